/** Messages of dummy. Written by scripts/generate.ts. */

import {
  OPENING_SIGN_TASK,
  OPENING_SIGNED_CONTRIBUTION,
  CLOSING_CONCLUDE_TASK,
  CLOSING_SIGNED_CONTRIBUTION,
  FILLING_ADD_UP_TASK,
  FILLING_SHARE_CONTRIBUTION,
  SITE_EFFECTS_ADD_UP_TASK,
  SITE_EFFECTS_SHARE_CONTRIBUTION,
  PROFILES_TAKE_LABELS_TASK,
  PROFILES_LABELS_TAKEN_CONTRIBUTION,
  PROFILES_ADD_PROFILE_TASK,
  PROFILES_PROFILE_SHARE_CONTRIBUTION,
  PROFILES_TELL_PROFILE_TASK,
  PROFILES_PROFILE_TOLD_CONTRIBUTION,
  PROFILES_READ_PROFILES_TASK,
  PROFILES_PROFILES_READ_CONTRIBUTION,
} from "./shared.ts";
import type { Ints, Words } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export interface GreetingGreet {
  readonly kind: "greet";
}

export interface GreetingGreeted {
  readonly kind: "greeted";
}

export interface GreetingWord {
  readonly kind: "word";
  readonly word: Words;
}

export interface CountCount {
  readonly kind: "count";
}

export interface CountCounted {
  readonly kind: "counted";
  readonly positions: Ints;
}

export interface CountConfirm {
  readonly kind: "confirm";
  readonly total: number;
}

export interface CountConfirmed {
  readonly kind: "confirmed";
  readonly total: number;
}

export interface CountWord {
  readonly kind: "word";
  readonly word: Words;
}

export interface CountLabels {
  readonly kind: "labels";
  readonly labels: Ints;
}

export interface CountTotal {
  readonly kind: "total";
  readonly total: number;
}

export interface ClosingLabels {
  readonly kind: "labels";
  readonly labels: Ints;
}

export interface ClosingTotal {
  readonly kind: "total";
  readonly total: number;
}

export const VERSION = 2;

export const MESSAGES: readonly MessageSpec[] = [
  OPENING_SIGN_TASK,
  OPENING_SIGNED_CONTRIBUTION,
  {
    stage: "greeting",
    kind: "greet",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task of round 1: send a random word to the next party.",
      title: "Greet",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "greeting",
    kind: "greeted",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Contribution of round 1: the confirmation that a word was sent.",
      title: "Greeted",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "greeting",
    kind: "word",
    version: 1,
    role: "envelope",
    arrays: [{ name: "word", dtype: "uint64", shape: [1], bounds: [null, null] }],
    values: {
      additionalProperties: false,
      description:
        "Envelope of rounds 1 and 2: a random word for the next slot, then its echo.",
      title: "Word",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "count",
    kind: "count",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task of round 2: send the indices of your rows.",
      title: "Count",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "count",
    kind: "counted",
    version: 1,
    role: "contribution",
    arrays: [{ name: "positions", dtype: "int64", shape: ["n"], bounds: [0, null] }],
    values: {
      additionalProperties: false,
      description: "Contribution of round 2: the indices of a party's rows.",
      title: "Counted",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "count",
    kind: "confirm",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task of round 3: confirm the total number of rows.",
      title: "Confirm",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  {
    stage: "count",
    kind: "confirmed",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution of round 3: the total number of rows as this party read it.",
      title: "Confirmed",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  {
    stage: "count",
    kind: "word",
    version: 1,
    role: "envelope",
    arrays: [{ name: "word", dtype: "uint64", shape: [1], bounds: [null, null] }],
    values: {
      additionalProperties: false,
      description:
        "Envelope of rounds 1 and 2: a random word for the next slot, then its echo.",
      title: "Word",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "count",
    kind: "labels",
    version: 1,
    role: "result",
    arrays: [{ name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] }],
    values: {
      additionalProperties: false,
      description: "Result of a slot: the labels of its rows.",
      title: "Labels",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "count",
    kind: "total",
    version: 1,
    role: "result",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "The summary that the coordinator receives: the total number of rows.",
      title: "Total",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  CLOSING_CONCLUDE_TASK,
  CLOSING_SIGNED_CONTRIBUTION,
  {
    stage: "closing",
    kind: "labels",
    version: 1,
    role: "result",
    arrays: [{ name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] }],
    values: {
      additionalProperties: false,
      description: "Result of a slot: the labels of its rows.",
      title: "Labels",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "closing",
    kind: "total",
    version: 1,
    role: "result",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "The summary that the coordinator receives: the total number of rows.",
      title: "Total",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  FILLING_ADD_UP_TASK,
  FILLING_SHARE_CONTRIBUTION,
  SITE_EFFECTS_ADD_UP_TASK,
  SITE_EFFECTS_SHARE_CONTRIBUTION,
  PROFILES_TAKE_LABELS_TASK,
  PROFILES_LABELS_TAKEN_CONTRIBUTION,
  PROFILES_ADD_PROFILE_TASK,
  PROFILES_PROFILE_SHARE_CONTRIBUTION,
  PROFILES_TELL_PROFILE_TASK,
  PROFILES_PROFILE_TOLD_CONTRIBUTION,
  PROFILES_READ_PROFILES_TASK,
  PROFILES_PROFILES_READ_CONTRIBUTION,
];
