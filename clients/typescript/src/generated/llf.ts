/** Messages of llf. Written by scripts/generate.ts. */

import {
  OPENING_SIGN_TASK,
  OPENING_SIGNED_CONTRIBUTION,
  SECRETS_SHARE_SECRETS_TASK,
  SECRETS_SECRETS_SHARED_CONTRIBUTION,
  SECRETS_GROUP_SECRET_ENVELOPE,
  ALIGNMENT_COMPARE_DIGESTS_TASK,
  ALIGNMENT_DIGESTS_CONTRIBUTION,
  ALIGNMENT_DIGESTS_ENVELOPE,
  MOMENTS_ADD_UP_TASK,
  MOMENTS_SHARE_CONTRIBUTION,
  CLOSING_CONCLUDE_TASK,
  CLOSING_SIGNED_CONTRIBUTION,
  LINKAGE_MASK_KEYS_TASK,
  LINKAGE_KEYS_MASKED_CONTRIBUTION,
  LINKAGE_PASS_KEYS_TASK,
  LINKAGE_KEYS_PASSED_CONTRIBUTION,
  LINKAGE_SHOW_TOKENS_TASK,
  LINKAGE_KEY_TOKENS_CONTRIBUTION,
  LINKAGE_SELECT_LINKED_TASK,
  LINKAGE_DIGESTS_CONTRIBUTION,
  LINKAGE_MASKED_KEYS_ENVELOPE,
  LINKAGE_DIGESTS_ENVELOPE,
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
  type Figures,
  FIGURES,
} from "./shared.ts";
import type { Bytes, Floats, Ints, Words } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export interface StartPropose {
  readonly kind: "propose";
}

export interface StartProposed {
  readonly kind: "proposed";
}

export interface StartSettle {
  readonly kind: "settle";
}

export interface StartSettled {
  readonly kind: "settled";
}

export interface StartConfirm {
  readonly kind: "confirm";
}

export interface StartConfirmed {
  readonly kind: "confirmed";
}

export interface StartCandidates {
  readonly kind: "candidates";
  readonly centroids: Floats;
  readonly sizes: Ints;
}

export interface StartStartCentroids {
  readonly kind: "start-centroids";
  readonly centroids: Floats;
}

export interface UpdatesUpdate {
  readonly kind: "update";
  readonly number: number;
  readonly members: readonly string[];
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
}

export interface UpdatesSums {
  readonly kind: "sums";
  readonly round: number;
  readonly attempt: number;
  readonly moved: number | null;
  readonly stop: boolean;
  readonly words: Words;
  readonly start: Floats;
}

export interface UpdatesClose {
  readonly kind: "close";
  readonly members: readonly string[];
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
}

export interface UpdatesClosing {
  readonly kind: "closing";
  readonly round: number;
  readonly attempt: number;
  readonly words: Words;
}

export interface UpdatesGather {
  readonly kind: "gather";
  readonly members: readonly string[];
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
  readonly closed_in: Ints;
  readonly closed_by: Bytes;
  readonly closing: Words;
}

export interface UpdatesGathered {
  readonly kind: "gathered";
  readonly round: number;
  readonly attempt: number;
  readonly words: Words;
}

export interface UpdatesTell {
  readonly kind: "tell";
  readonly members: readonly string[];
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
  readonly closed_in: Ints;
  readonly closed_by: Bytes;
  readonly closing: Words;
  readonly gathered_in: Ints;
  readonly gathered_by: Bytes;
  readonly gathered: Words;
}

export interface UpdatesTold {
  readonly kind: "told";
  readonly n_updates: number;
  readonly n_coinciding: number | null;
  readonly digest: string;
  readonly figures: Figures | null;
  readonly clusters: Ints;
  readonly centroids: Floats;
  readonly sizes: Ints;
}

export interface UpdatesClosed {
  readonly kind: "closed";
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
  readonly closed_in: Ints;
  readonly closed_by: Bytes;
  readonly closing: Words;
  readonly gathered_in: Ints;
  readonly gathered_by: Bytes;
  readonly gathered: Words;
}

export interface UpdatesSummary {
  readonly kind: "summary";
  readonly n_updates: number;
  readonly n_coinciding: number | null;
  readonly clusters: Ints;
  readonly centroids: Floats;
  readonly sizes: Ints;
  readonly tolerances: Floats;
}

export interface ClosingClosed {
  readonly kind: "closed";
  readonly updates: Ints;
  readonly cohorts: Bytes;
  readonly totals: Words;
  readonly closed_in: Ints;
  readonly closed_by: Bytes;
  readonly closing: Words;
  readonly gathered_in: Ints;
  readonly gathered_by: Bytes;
  readonly gathered: Words;
}

export interface ClosingSummary {
  readonly kind: "summary";
  readonly n_updates: number;
  readonly n_coinciding: number | null;
  readonly clusters: Ints;
  readonly centroids: Floats;
  readonly sizes: Ints;
  readonly tolerances: Floats;
}

export interface StartMeasureGroups {
  readonly kind: "measure-groups";
}

export interface StartGroupDistances {
  readonly kind: "group-distances";
  readonly words: Words;
}

export interface StartStartFrom {
  readonly kind: "start-from";
  readonly labels: Ints;
}

export interface UpdatesMeasure {
  readonly kind: "measure";
  readonly number: number;
  readonly labels: Ints;
  readonly memberships: Floats;
}

export interface UpdatesDistances {
  readonly kind: "distances";
  readonly words: Words;
}

export interface UpdatesScatter {
  readonly kind: "scatter";
  readonly labels: Ints;
}

export interface UpdatesScattered {
  readonly kind: "scattered";
  readonly words: Words;
}

export interface UpdatesGrouped {
  readonly kind: "grouped";
  readonly n_updates: number;
  readonly n_coinciding: number;
  readonly figures: Figures;
  readonly labels: Ints;
  readonly memberships: Floats;
  readonly cluster_sizes: Ints;
}

export interface UpdatesColumnsSummary {
  readonly kind: "columns-summary";
  readonly n_updates: number;
  readonly n_coinciding: number | null;
  readonly cluster_sizes: Ints;
  readonly clusters: Ints;
  readonly tolerances: Floats;
}

export interface ClosingGrouped {
  readonly kind: "grouped";
  readonly n_updates: number;
  readonly n_coinciding: number;
  readonly figures: Figures;
  readonly labels: Ints;
  readonly memberships: Floats;
  readonly cluster_sizes: Ints;
}

export interface ClosingColumnsSummary {
  readonly kind: "columns-summary";
  readonly n_updates: number;
  readonly n_coinciding: number | null;
  readonly cluster_sizes: Ints;
  readonly clusters: Ints;
  readonly tolerances: Floats;
}

export const VERSION = 2;

export const MESSAGES: readonly MessageSpec[] = [
  OPENING_SIGN_TASK,
  OPENING_SIGNED_CONTRIBUTION,
  SECRETS_SHARE_SECRETS_TASK,
  SECRETS_SECRETS_SHARED_CONTRIBUTION,
  SECRETS_GROUP_SECRET_ENVELOPE,
  ALIGNMENT_COMPARE_DIGESTS_TASK,
  ALIGNMENT_DIGESTS_CONTRIBUTION,
  ALIGNMENT_DIGESTS_ENVELOPE,
  MOMENTS_ADD_UP_TASK,
  MOMENTS_SHARE_CONTRIBUTION,
  {
    stage: "start",
    kind: "propose",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task: compute the centroids of your own clusters, and seal them to the leader.",
      title: "Propose",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "proposed",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: confirms that the candidates were sealed to the leader.",
      title: "StartProposal",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "settle",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task: if you are the leader, determine the start and seal it to all parties.",
      title: "Settle",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "settled",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: confirms the task and, from the leader, that the start was sent.",
      title: "StartSettled",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "confirm",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task: store the start, which a party needs even if it skips the first update.",
      title: "KeepStart",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "confirmed",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Contribution: confirms that the party has stored the start.",
      title: "StartKept",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "candidates",
    version: 1,
    role: "envelope",
    arrays: [
      { name: "centroids", dtype: "float64", shape: ["k", "m"], bounds: [null, null] },
      { name: "sizes", dtype: "int64", shape: ["k"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Envelope: the centroids and sizes of a party's own clusters.\n\ncentroids: rounded, in scaled units.\nsizes: the rows of each cluster, rounded to a multiple of five; 0 without a cluster.",
      title: "Candidates",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "start-centroids",
    version: 1,
    role: "envelope",
    arrays: [
      { name: "centroids", dtype: "float64", shape: ["k", "m"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Envelope and memory: the initial centroids V(0), in scaled units.",
      title: "StartCentroids",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "update",
    version: 1,
    role: "task",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: add up your rows around the centroids that result from the totals.",
      title: "Update",
      type: "object",
      properties: {
        number: { minimum: 1, title: "Number", type: "integer" },
        members: { items: { type: "string" }, title: "Members", type: "array" },
      },
      required: ["number", "members"],
    },
  },
  {
    stage: "updates",
    kind: "sums",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "words", dtype: "uint64", shape: ["w"], bounds: [null, null] },
      { name: "start", dtype: "float64", shape: ["k", "m"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Contribution to an update: the masked sums of one party.\n\nround, attempt: determine the masks; parties that did not take part need both\n    numbers later, to read the total.\nstart: always empty.\nmoved: how far the centroids moved in the previous update, to two digits; only from\n    the leader.\nstop: whether ``moved`` was within the tolerance; set only by the leader.",
      title: "Sums",
      type: "object",
      properties: {
        round: { maximum: 2147483648, minimum: 1, title: "Round", type: "integer" },
        attempt: { maximum: 2147483648, minimum: 1, title: "Attempt", type: "integer" },
        moved: {
          anyOf: [{ maximum: 1e100, minimum: 0, type: "number" }, { type: "null" }],
          default: null,
          title: "Moved",
        },
        stop: { default: false, title: "Stop", type: "boolean" },
      },
      required: ["round", "attempt"],
    },
  },
  {
    stage: "updates",
    kind: "close",
    version: 1,
    role: "task",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: label your rows by their nearest final centroids, and add them up by label.",
      title: "Close",
      type: "object",
      properties: {
        members: { items: { type: "string" }, title: "Members", type: "array" },
      },
      required: ["members"],
    },
  },
  {
    stage: "updates",
    kind: "closing",
    version: 1,
    role: "contribution",
    arrays: [{ name: "words", dtype: "uint64", shape: ["w"], bounds: [null, null] }],
    values: {
      additionalProperties: false,
      description:
        "Contribution: masked sums and counts of this party's rows by label.",
      title: "ClosingShare",
      type: "object",
      properties: {
        round: { maximum: 2147483648, minimum: 1, title: "Round", type: "integer" },
        attempt: { maximum: 2147483648, minimum: 1, title: "Attempt", type: "integer" },
      },
      required: ["round", "attempt"],
    },
  },
  {
    stage: "updates",
    kind: "gather",
    version: 1,
    role: "task",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
      { name: "closed_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "closed_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "closing", dtype: "uint64", shape: ["closing"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: add up the distances of your rows from the means of the final labels.",
      title: "Gather",
      type: "object",
      properties: {
        members: { items: { type: "string" }, title: "Members", type: "array" },
      },
      required: ["members"],
    },
  },
  {
    stage: "updates",
    kind: "gathered",
    version: 1,
    role: "contribution",
    arrays: [{ name: "words", dtype: "uint64", shape: ["w"], bounds: [null, null] }],
    values: {
      additionalProperties: false,
      description:
        "Contribution: masked cluster sizes, and masked sums for the quality figures.",
      title: "GatheredSizes",
      type: "object",
      properties: {
        round: { maximum: 2147483648, minimum: 1, title: "Round", type: "integer" },
        attempt: { maximum: 2147483648, minimum: 1, title: "Attempt", type: "integer" },
      },
      required: ["round", "attempt"],
    },
  },
  {
    stage: "updates",
    kind: "tell",
    version: 1,
    role: "task",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
      { name: "closed_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "closed_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "closing", dtype: "uint64", shape: ["closing"], bounds: [null, null] },
      { name: "gathered_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "gathered_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "gathered", dtype: "uint64", shape: ["gathered"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: send the result's digest and, if you are the leader, what the terms publish.",
      title: "ReportDigest",
      type: "object",
      properties: {
        members: { items: { type: "string" }, title: "Members", type: "array" },
      },
      required: ["members"],
    },
  },
  {
    stage: "updates",
    kind: "told",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "clusters", dtype: "int64", shape: ["p"], bounds: [0, null] },
      {
        name: "centroids",
        dtype: "float64",
        shape: ["centroids", "m"],
        bounds: [null, null],
      },
      { name: "sizes", dtype: "int64", shape: ["p"], bounds: [0, null] },
    ],
    values: {
      $defs: { Figures: FIGURES },
      additionalProperties: false,
      description:
        "Contribution: the digest of the result and, from the leader, the published part.\n\ndigest: HMAC-SHA256 of the result under the group's secret, equal for all parties.\nfigures: the quality figures of the labels, to six digits; only from the leader.",
      title: "DigestReport",
      type: "object",
      properties: {
        n_updates: { minimum: 0, title: "N Updates", type: "integer" },
        n_coinciding: {
          anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
          default: null,
          title: "N Coinciding",
        },
        digest: { pattern: "^[0-9a-f]{64}$", title: "Digest", type: "string" },
        figures: {
          anyOf: [{ $ref: "#/$defs/Figures" }, { type: "null" }],
          default: null,
        },
      },
      required: ["n_updates", "digest"],
    },
  },
  {
    stage: "updates",
    kind: "closed",
    version: 1,
    role: "result",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
      { name: "closed_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "closed_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "closing", dtype: "uint64", shape: ["closing"], bounds: [null, null] },
      { name: "gathered_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "gathered_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "gathered", dtype: "uint64", shape: ["gathered"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The totals of `labelled`, and the total of the round that `gather` requests.\n\ngathered_in, gathered_by, gathered: like closed_in, closed_by and closing, but for\n    the total of `gather`.",
      title: "FinalTotals",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "summary",
    version: 1,
    role: "result",
    arrays: [
      { name: "clusters", dtype: "int64", shape: ["p"], bounds: [0, null] },
      {
        name: "centroids",
        dtype: "float64",
        shape: ["centroids", "m"],
        bounds: [null, null],
      },
      { name: "sizes", dtype: "int64", shape: ["p"], bounds: [0, null] },
      { name: "tolerances", dtype: "float64", shape: ["t"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The summary that the coordinator receives.\n\ntolerances: how far the centroids moved in each update.",
      title: "Summary",
      type: "object",
      properties: {
        n_updates: { minimum: 0, title: "N Updates", type: "integer" },
        n_coinciding: {
          anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
          default: null,
          title: "N Coinciding",
        },
      },
      required: ["n_updates"],
    },
  },
  CLOSING_CONCLUDE_TASK,
  CLOSING_SIGNED_CONTRIBUTION,
  {
    stage: "closing",
    kind: "closed",
    version: 1,
    role: "result",
    arrays: [
      { name: "updates", dtype: "int64", shape: ["h", 3], bounds: [1, null] },
      { name: "cohorts", dtype: "uint8", shape: ["h", "slots"], bounds: [null, 1] },
      { name: "totals", dtype: "uint64", shape: ["h", "w"], bounds: [null, null] },
      { name: "closed_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "closed_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "closing", dtype: "uint64", shape: ["closing"], bounds: [null, null] },
      { name: "gathered_in", dtype: "int64", shape: [2], bounds: [1, null] },
      { name: "gathered_by", dtype: "uint8", shape: ["slots"], bounds: [null, 1] },
      { name: "gathered", dtype: "uint64", shape: ["gathered"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The totals of `labelled`, and the total of the round that `gather` requests.\n\ngathered_in, gathered_by, gathered: like closed_in, closed_by and closing, but for\n    the total of `gather`.",
      title: "FinalTotals",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "closing",
    kind: "summary",
    version: 1,
    role: "result",
    arrays: [
      { name: "clusters", dtype: "int64", shape: ["p"], bounds: [0, null] },
      {
        name: "centroids",
        dtype: "float64",
        shape: ["centroids", "m"],
        bounds: [null, null],
      },
      { name: "sizes", dtype: "int64", shape: ["p"], bounds: [0, null] },
      { name: "tolerances", dtype: "float64", shape: ["t"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The summary that the coordinator receives.\n\ntolerances: how far the centroids moved in each update.",
      title: "Summary",
      type: "object",
      properties: {
        n_updates: { minimum: 0, title: "N Updates", type: "integer" },
        n_coinciding: {
          anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
          default: null,
          title: "N Coinciding",
        },
      },
      required: ["n_updates"],
    },
  },
  {
    stage: "start",
    kind: "measure-groups",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task: compute distances to group means from the first rows in the secret order.",
      title: "MeasureGroups",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "group-distances",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "words", dtype: "uint64", shape: ["n", "groups"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Contribution: masked squared distances to the group means, as ring elements.",
      title: "GroupDistances",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "start",
    kind: "start-from",
    version: 1,
    role: "task",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n_labels"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: use the mean of each cluster's sampled rows as its initial centroid.\n\nlabels: the clusters of the first rows in the secret order.",
      title: "StartFrom",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "measure",
    version: 1,
    role: "task",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n_labels"], bounds: [0, null] },
      {
        name: "memberships",
        dtype: "float64",
        shape: ["n_memberships", "k"],
        bounds: [0, 1],
      },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: compute the distances of all rows to your coordinates of the centroids.\n\nlabels: the labels after the previous update, in the secret order; empty before the\n    first update and for fuzzy c-means.\nmemberships: the memberships after the previous update, in the secret order; empty\n    before the first update and for hard c-means.",
      title: "MeasureDistances",
      type: "object",
      properties: { number: { minimum: 1, title: "Number", type: "integer" } },
      required: ["number"],
    },
  },
  {
    stage: "updates",
    kind: "distances",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "words", dtype: "uint64", shape: ["n", "k"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Contribution: masked squared distances over this party's columns.",
      title: "Distances",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "scatter",
    version: 1,
    role: "task",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n_labels"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: send the scatter of your columns within and between the final clusters.\n\nlabels: the final labels, in the secret order.",
      title: "Scatter",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "scattered",
    version: 1,
    role: "contribution",
    arrays: [{ name: "words", dtype: "uint64", shape: [2], bounds: [null, null] }],
    values: {
      additionalProperties: false,
      description:
        "Contribution: masked Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over this party's columns.",
      title: "ScatterShare",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "updates",
    kind: "grouped",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      {
        name: "memberships",
        dtype: "float64",
        shape: ["n_memberships", "k"],
        bounds: [0, 1],
      },
      { name: "cluster_sizes", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
    ],
    values: {
      $defs: { Figures: FIGURES },
      additionalProperties: false,
      description:
        "Result for the parties of the row group, in the order in which rows were sent.",
      title: "GroupLabels",
      type: "object",
      properties: {
        n_updates: { title: "N Updates", type: "integer" },
        n_coinciding: { minimum: 0, title: "N Coinciding", type: "integer" },
        figures: { $ref: "#/$defs/Figures" },
      },
      required: ["n_updates", "n_coinciding", "figures"],
    },
  },
  {
    stage: "updates",
    kind: "columns-summary",
    version: 1,
    role: "result",
    arrays: [
      { name: "cluster_sizes", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
      { name: "clusters", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
      { name: "tolerances", dtype: "float64", shape: ["t"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description: "The summary that the coordinator receives for split columns.",
      title: "ColumnsSummary",
      type: "object",
      properties: {
        n_updates: { title: "N Updates", type: "integer" },
        n_coinciding: {
          anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
          default: null,
          title: "N Coinciding",
        },
      },
      required: ["n_updates"],
    },
  },
  {
    stage: "closing",
    kind: "grouped",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      {
        name: "memberships",
        dtype: "float64",
        shape: ["n_memberships", "k"],
        bounds: [0, 1],
      },
      { name: "cluster_sizes", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
    ],
    values: {
      $defs: { Figures: FIGURES },
      additionalProperties: false,
      description:
        "Result for the parties of the row group, in the order in which rows were sent.",
      title: "GroupLabels",
      type: "object",
      properties: {
        n_updates: { title: "N Updates", type: "integer" },
        n_coinciding: { minimum: 0, title: "N Coinciding", type: "integer" },
        figures: { $ref: "#/$defs/Figures" },
      },
      required: ["n_updates", "n_coinciding", "figures"],
    },
  },
  {
    stage: "closing",
    kind: "columns-summary",
    version: 1,
    role: "result",
    arrays: [
      { name: "cluster_sizes", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
      { name: "clusters", dtype: "int64", shape: ["clusters"], bounds: [0, null] },
      { name: "tolerances", dtype: "float64", shape: ["t"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description: "The summary that the coordinator receives for split columns.",
      title: "ColumnsSummary",
      type: "object",
      properties: {
        n_updates: { title: "N Updates", type: "integer" },
        n_coinciding: {
          anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
          default: null,
          title: "N Coinciding",
        },
      },
      required: ["n_updates"],
    },
  },
  LINKAGE_MASK_KEYS_TASK,
  LINKAGE_KEYS_MASKED_CONTRIBUTION,
  LINKAGE_PASS_KEYS_TASK,
  LINKAGE_KEYS_PASSED_CONTRIBUTION,
  LINKAGE_SHOW_TOKENS_TASK,
  LINKAGE_KEY_TOKENS_CONTRIBUTION,
  LINKAGE_SELECT_LINKED_TASK,
  LINKAGE_DIGESTS_CONTRIBUTION,
  LINKAGE_MASKED_KEYS_ENVELOPE,
  LINKAGE_DIGESTS_ENVELOPE,
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
