/** Messages of dc. Written by scripts/generate.ts. */

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
  LINKAGE_SHOW_TOKENS_TASK,
  LINKAGE_KEY_TOKENS_CONTRIBUTION,
  LINKAGE_SELECT_LINKED_TASK,
  LINKAGE_DIGESTS_CONTRIBUTION,
  LINKAGE_MASKED_KEYS_ENVELOPE,
  LINKAGE_DIGESTS_ENVELOPE,
  LINKAGE_PASS_KEYS_TASK,
  LINKAGE_KEYS_PASSED_CONTRIBUTION,
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
import type { Floats, Ints } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export interface UploadProject {
  readonly kind: "project";
}

export interface UploadProjections {
  readonly kind: "projections";
  readonly rows: Floats;
  readonly anchors: Floats;
}

export interface UploadRowGroupLabels {
  readonly kind: "row-group-labels";
  readonly labels: Ints;
  readonly cluster_sizes: Ints;
}

export interface UploadRowGroupModel {
  readonly kind: "row-group-model";
  readonly labels: Ints;
  readonly cluster_sizes: Ints;
  readonly coordinates: Floats;
  readonly centroids: Floats;
  readonly map_matrix: Floats;
  readonly map_offset: Floats;
}

export interface UploadSummary {
  readonly kind: "summary";
  readonly inertia: number;
  readonly n_dimensions: number;
  readonly cluster_sizes: Ints;
  readonly starts: Ints;
}

export interface ClosingRowGroupLabels {
  readonly kind: "row-group-labels";
  readonly labels: Ints;
  readonly cluster_sizes: Ints;
}

export interface ClosingRowGroupModel {
  readonly kind: "row-group-model";
  readonly labels: Ints;
  readonly cluster_sizes: Ints;
  readonly coordinates: Floats;
  readonly centroids: Floats;
  readonly map_matrix: Floats;
  readonly map_offset: Floats;
}

export interface ClosingSummary {
  readonly kind: "summary";
  readonly inertia: number;
  readonly n_dimensions: number;
  readonly cluster_sizes: Ints;
  readonly starts: Ints;
}

export interface RangesMeasure {
  readonly kind: "measure";
}

export interface RangesMeasured {
  readonly kind: "measured";
}

export interface RangesPool {
  readonly kind: "pool";
}

export interface RangesPooled {
  readonly kind: "pooled";
}

export interface RangesOwnRanges {
  readonly kind: "own-ranges";
  readonly minimum: Floats;
  readonly maximum: Floats;
}

export interface RangesPooledRanges {
  readonly kind: "pooled-ranges";
  readonly minimum: Floats;
  readonly maximum: Floats;
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
    stage: "upload",
    kind: "project",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task: project your rows and the anchors. The roster fixes the number of anchors.",
      title: "Project",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "upload",
    kind: "projections",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "rows", dtype: "float64", shape: ["n", "width"], bounds: [null, null] },
      {
        name: "anchors",
        dtype: "float64",
        shape: ["r", "width"],
        bounds: [null, null],
      },
    ],
    values: {
      additionalProperties: false,
      description:
        "Contribution: the reduced rows X̃_ij and the reduced anchors X̃^anc_ij.\n\nwidth: at most the party's number of features, which the roster lists.",
      title: "Projections",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "upload",
    kind: "row-group-labels",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Result for the parties of a row group: labels, in the order of the sent rows.",
      title: "RowGroupLabels",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "upload",
    kind: "row-group-model",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
      {
        name: "coordinates",
        dtype: "float64",
        shape: ["n_coordinates", "dims"],
        bounds: [null, null],
      },
      {
        name: "centroids",
        dtype: "float64",
        shape: ["k", "dims"],
        bounds: [null, null],
      },
      {
        name: "map_matrix",
        dtype: "float64",
        shape: ["width", "map_dims"],
        bounds: [null, null],
      },
      {
        name: "map_offset",
        dtype: "float64",
        shape: ["map_dims"],
        bounds: [null, null],
      },
    ],
    values: {
      additionalProperties: false,
      description:
        "Result if the terms disclose more than labels. Withheld fields are empty.\n\ncoordinates: Z_i, the rows of the row group in the space that was clustered.\ncentroids: θ, in the same space.\nmap_matrix, map_offset: G_i and g_i, the collaboration map of the row group.",
      title: "RowGroupModel",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "upload",
    kind: "summary",
    version: 1,
    role: "result",
    arrays: [
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
      { name: "starts", dtype: "int64", shape: ["n_init", "k"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The coordinator's summary.\n\nstarts: for each start of k-means, the numbers of the rows that were its initial\n    centroids. Rows are numbered through all row groups in turn, in the order in\n    which they were sent. Anyone who holds the pooled data in that order can start\n    k-means from the same rows.",
      title: "Summary",
      type: "object",
      properties: {
        inertia: { title: "Inertia", type: "number" },
        n_dimensions: { title: "N Dimensions", type: "integer" },
      },
      required: ["inertia", "n_dimensions"],
    },
  },
  CLOSING_CONCLUDE_TASK,
  CLOSING_SIGNED_CONTRIBUTION,
  {
    stage: "closing",
    kind: "row-group-labels",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Result for the parties of a row group: labels, in the order of the sent rows.",
      title: "RowGroupLabels",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "closing",
    kind: "row-group-model",
    version: 1,
    role: "result",
    arrays: [
      { name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] },
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
      {
        name: "coordinates",
        dtype: "float64",
        shape: ["n_coordinates", "dims"],
        bounds: [null, null],
      },
      {
        name: "centroids",
        dtype: "float64",
        shape: ["k", "dims"],
        bounds: [null, null],
      },
      {
        name: "map_matrix",
        dtype: "float64",
        shape: ["width", "map_dims"],
        bounds: [null, null],
      },
      {
        name: "map_offset",
        dtype: "float64",
        shape: ["map_dims"],
        bounds: [null, null],
      },
    ],
    values: {
      additionalProperties: false,
      description:
        "Result if the terms disclose more than labels. Withheld fields are empty.\n\ncoordinates: Z_i, the rows of the row group in the space that was clustered.\ncentroids: θ, in the same space.\nmap_matrix, map_offset: G_i and g_i, the collaboration map of the row group.",
      title: "RowGroupModel",
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
      { name: "cluster_sizes", dtype: "int64", shape: ["k"], bounds: [0, null] },
      { name: "starts", dtype: "int64", shape: ["n_init", "k"], bounds: [0, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "The coordinator's summary.\n\nstarts: for each start of k-means, the numbers of the rows that were its initial\n    centroids. Rows are numbered through all row groups in turn, in the order in\n    which they were sent. Anyone who holds the pooled data in that order can start\n    k-means from the same rows.",
      title: "Summary",
      type: "object",
      properties: {
        inertia: { title: "Inertia", type: "number" },
        n_dimensions: { title: "N Dimensions", type: "integer" },
      },
      required: ["inertia", "n_dimensions"],
    },
  },
  {
    stage: "ranges",
    kind: "measure",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task of round 1: measure the ranges of your rows, and seal them to the leader.",
      title: "Measure",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "ranges",
    kind: "measured",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Contribution of round 1: confirms the task.",
      title: "MeasuredColumns",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "ranges",
    kind: "pool",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Task of round 2: if you are the leader, seal the pooled ranges to the members.",
      title: "Pool",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "ranges",
    kind: "pooled",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Contribution of round 2: confirms the task.",
      title: "PooledColumns",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "ranges",
    kind: "own-ranges",
    version: 1,
    role: "envelope",
    arrays: [
      { name: "minimum", dtype: "float64", shape: ["m"], bounds: [null, null] },
      { name: "maximum", dtype: "float64", shape: ["m"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Envelope and memory: the smallest and largest value of each of a party's features.",
      title: "OwnRanges",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "ranges",
    kind: "pooled-ranges",
    version: 1,
    role: "envelope",
    arrays: [
      { name: "minimum", dtype: "float64", shape: ["m"], bounds: [null, null] },
      { name: "maximum", dtype: "float64", shape: ["m"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Envelope and memory: ranges over all rows of the column group.",
      title: "PooledRanges",
      type: "object",
      properties: {},
      required: [],
    },
  },
  LINKAGE_MASK_KEYS_TASK,
  LINKAGE_KEYS_MASKED_CONTRIBUTION,
  LINKAGE_SHOW_TOKENS_TASK,
  LINKAGE_KEY_TOKENS_CONTRIBUTION,
  LINKAGE_SELECT_LINKED_TASK,
  LINKAGE_DIGESTS_CONTRIBUTION,
  LINKAGE_MASKED_KEYS_ENVELOPE,
  LINKAGE_DIGESTS_ENVELOPE,
  LINKAGE_PASS_KEYS_TASK,
  LINKAGE_KEYS_PASSED_CONTRIBUTION,
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
