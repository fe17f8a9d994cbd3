/** Messages of dummy. Written by scripts/generate.ts. */

import type { Bytes, Ints, Words } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export const VERSION = 2;

export interface OpeningSign {
  readonly kind: "sign";
}

export interface OpeningSigned {
  readonly kind: "signed";
  readonly signature: string;
}

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

export interface ClosingSign {
  readonly kind: "sign";
}

export interface ClosingSigned {
  readonly kind: "signed";
  readonly signature: string;
}

export interface ClosingLabels {
  readonly kind: "labels";
  readonly labels: Ints;
}

export interface ClosingTotal {
  readonly kind: "total";
  readonly total: number;
}

export interface FillingAddUp {
  readonly kind: "add-up";
  readonly phase: number;
  readonly total: Words;
}

export interface FillingShare {
  readonly kind: "share";
  readonly words: Words;
}

export interface ProfilesTakeLabels {
  readonly kind: "take-labels";
  readonly figures: readonly {
    readonly n_clusters: number;
    readonly inertia: number | null;
    readonly simplified_silhouette: number | null;
    readonly silhouette: number | null;
    readonly calinski_harabasz: number | null;
    readonly davies_bouldin: number | null;
    readonly partition_coefficient: number | null;
    readonly xie_beni: number | null;
    readonly criterion: number | null;
    readonly gap: number | null;
    readonly gap_error: number | null;
    readonly gap_of_one: number | null;
    readonly stability: number | null;
    readonly prediction_strength: number | null;
    readonly n_iter: number | null;
    readonly converged: boolean | null;
  }[];
  readonly chosen: number;
  readonly result: Bytes;
}

export interface ProfilesLabelsTaken {
  readonly kind: "labels-taken";
  readonly n_clusters: number;
}

export interface ProfilesAddProfile {
  readonly kind: "add-profile";
  readonly sum: number;
  readonly n_clusters: number;
  readonly total: Words;
}

export interface ProfilesProfileShare {
  readonly kind: "profile-share";
  readonly words: Words;
}

export interface ProfilesTellProfile {
  readonly kind: "tell-profile";
  readonly total: Words;
}

export interface ProfilesProfileTold {
  readonly kind: "profile-told";
  readonly text: Bytes;
}

export interface ProfilesReadProfiles {
  readonly kind: "read-profiles";
  readonly text: Bytes;
}

export interface ProfilesProfilesRead {
  readonly kind: "profiles-read";
}

export interface ClosingConclude {
  readonly kind: "conclude";
  readonly figures: readonly {
    readonly n_clusters: number;
    readonly inertia: number | null;
    readonly simplified_silhouette: number | null;
    readonly silhouette: number | null;
    readonly calinski_harabasz: number | null;
    readonly davies_bouldin: number | null;
    readonly partition_coefficient: number | null;
    readonly xie_beni: number | null;
    readonly criterion: number | null;
    readonly gap: number | null;
    readonly gap_error: number | null;
    readonly gap_of_one: number | null;
    readonly stability: number | null;
    readonly prediction_strength: number | null;
    readonly n_iter: number | null;
    readonly converged: boolean | null;
  }[];
  readonly chosen: number;
}

export const MESSAGES: readonly MessageSpec[] = [
  {
    stage: "opening",
    kind: "sign",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task: sign what everybody was told until now.",
      title: "Sign",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "opening",
    kind: "signed",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: an Ed25519 signature (hex) under the party's key of the roster.",
      title: "TranscriptSignature",
      type: "object",
      properties: {
        signature: { pattern: "^[0-9a-f]{128}$", title: "Signature", type: "string" },
      },
      required: ["signature"],
    },
  },
  {
    stage: "greeting",
    kind: "greet",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task of round 1.",
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
      description: "Contribution of round 1.",
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
      description: "Envelope of rounds 1 and 2: a word to the next slot, and its echo.",
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
      description: "Task of round 2.",
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
      description: "Contribution of round 2: the row numbers of a party.",
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
      description: "Task of round 3.",
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
      description: "Contribution of round 3.",
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
      description: "Envelope of rounds 1 and 2: a word to the next slot, and its echo.",
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
      description: "Result of a slot.",
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
      description: "Summary for the coordinator.",
      title: "Total",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  {
    stage: "closing",
    kind: "sign",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      additionalProperties: false,
      description: "Task: sign what everybody was told until now.",
      title: "Sign",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "closing",
    kind: "signed",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: an Ed25519 signature (hex) under the party's key of the roster.",
      title: "TranscriptSignature",
      type: "object",
      properties: {
        signature: { pattern: "^[0-9a-f]{128}$", title: "Signature", type: "string" },
      },
      required: ["signature"],
    },
  },
  {
    stage: "closing",
    kind: "labels",
    version: 1,
    role: "result",
    arrays: [{ name: "labels", dtype: "int64", shape: ["n"], bounds: [0, null] }],
    values: {
      additionalProperties: false,
      description: "Result of a slot.",
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
      description: "Summary for the coordinator.",
      title: "Total",
      type: "object",
      properties: { total: { title: "Total", type: "integer" } },
      required: ["total"],
    },
  },
  {
    stage: "filling",
    kind: "add-up",
    version: 1,
    role: "task",
    arrays: [
      { name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Task: the phase in hand, and the total of the phase before.",
      title: "AddUp",
      type: "object",
      properties: {
        phase: { maximum: 5, minimum: 1, title: "Phase", type: "integer" },
      },
      required: ["phase"],
    },
  },
  {
    stage: "filling",
    kind: "share",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Contribution: this party's masked share of the phase's sum.",
      title: "Share",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "profiles",
    kind: "take-labels",
    version: 1,
    role: "task",
    arrays: [
      { name: "result", dtype: "uint8", shape: ["result"], bounds: [null, null] },
    ],
    values: {
      $defs: {
        Figures: {
          additionalProperties: false,
          description:
            'Intrinsic figures of one partition; None where one is not defined or not known.\n\nn_clusters: clusters that have rows.\ninertia: sum of squared distances of rows to the mean of their cluster.\nsimplified_silhouette: mean over rows of (b - a) / max(a, b), a and b the distances\n    to the means of the own and of the nearest other cluster (E. R. Hruschka,\n    L. N. de Castro, R. J. G. B. Campello, "Evolutionary algorithms for clustering\n    gene-expression data", 2004).\nsilhouette: the same of mean distances to the rows (P. J. Rousseeuw, 1987).\ncalinski_harabasz: T. Caliński and J. Harabasz, 1974.\ndavies_bouldin: D. L. Davies and D. W. Bouldin, 1979.\npartition_coefficient: mean over rows of Σ_c μ_c² (J. C. Bezdek, 1973).\nxie_beni: X. L. Xie and G. Beni, 1991.\ncriterion: what the algorithm itself optimises, where that is not the inertia.\ngap, gap_error: the gap statistic and the standard error of its reference; gap_of_one\n    that of one cluster (R. Tibshirani, G. Walther, T. Hastie, 2001). Of several runs.\nstability: mean adjusted Rand index of clusterings of halves. Of several runs.\nprediction_strength: least share of pairs of a cluster of half the rows that the other\n    half keeps together (R. Tibshirani, G. Walther, 2005). Of several runs.\nn_iter: how many updates were made.\nconverged: whether they stopped before the last one that was allowed.',
          properties: {
            n_clusters: { minimum: 1, title: "N Clusters", type: "integer" },
            inertia: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Inertia",
            },
            simplified_silhouette: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Simplified Silhouette",
            },
            silhouette: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Silhouette",
            },
            calinski_harabasz: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Calinski Harabasz",
            },
            davies_bouldin: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Davies Bouldin",
            },
            partition_coefficient: {
              anyOf: [{ maximum: 1, minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Partition Coefficient",
            },
            xie_beni: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Xie Beni",
            },
            criterion: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Criterion",
            },
            gap: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Gap",
            },
            gap_error: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Gap Error",
            },
            gap_of_one: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Gap Of One",
            },
            stability: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Stability",
            },
            prediction_strength: {
              anyOf: [{ maximum: 1, minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Prediction Strength",
            },
            n_iter: {
              anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
              default: null,
              title: "N Iter",
            },
            converged: {
              anyOf: [{ type: "boolean" }, { type: "null" }],
              default: null,
              title: "Converged",
            },
          },
          required: ["n_clusters"],
          title: "Figures",
          type: "object",
        },
      },
      additionalProperties: false,
      description:
        "Task: keep the labels of the chosen run; its result comes with it.\n\nfigures, chosen: as in the task of the last round.\nresult: the slot's result, as it will be handed out.",
      title: "TakeLabels",
      type: "object",
      properties: {
        figures: {
          items: { $ref: "#/$defs/Figures" },
          title: "Figures",
          type: "array",
        },
        chosen: { minimum: 0, title: "Chosen", type: "integer" },
      },
      required: ["figures", "chosen"],
    },
  },
  {
    stage: "profiles",
    kind: "labels-taken",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: how many clusters this party knows of, by their labels.",
      title: "LabelsTaken",
      type: "object",
      properties: {
        n_clusters: {
          maximum: 10000,
          minimum: 1,
          title: "N Clusters",
          type: "integer",
        },
      },
      required: ["n_clusters"],
    },
  },
  {
    stage: "profiles",
    kind: "add-profile",
    version: 1,
    role: "task",
    arrays: [
      { name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task: add to a sum; the total of the sum before comes with it.\n\nn_clusters: how many clusters there are, over all parties.",
      title: "AddProfile",
      type: "object",
      properties: {
        sum: { maximum: 6, minimum: 1, title: "Sum", type: "integer" },
        n_clusters: {
          maximum: 10000,
          minimum: 1,
          title: "N Clusters",
          type: "integer",
        },
      },
      required: ["sum", "n_clusters"],
    },
  },
  {
    stage: "profiles",
    kind: "profile-share",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Contribution: this party's masked share of the sum; empty of one that is alone.",
      title: "ProfileShare",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "profiles",
    kind: "tell-profile",
    version: 1,
    role: "task",
    arrays: [
      { name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description: "Task: make the profile; the total of the last sum comes with it.",
      title: "TellProfile",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "profiles",
    kind: "profile-told",
    version: 1,
    role: "contribution",
    arrays: [
      { name: "text", dtype: "uint8", shape: ["characters"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Contribution: the rounded profile as JSON, of the leader of a group that tells one.\n\nEmpty of all others.",
      title: "ProfileTold",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "profiles",
    kind: "read-profiles",
    version: 1,
    role: "task",
    arrays: [
      { name: "text", dtype: "uint8", shape: ["characters"], bounds: [null, null] },
    ],
    values: {
      additionalProperties: false,
      description:
        "Task, and memory: the rounded profiles of all column groups, as JSON.",
      title: "ReadProfiles",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "profiles",
    kind: "profiles-read",
    version: 1,
    role: "contribution",
    arrays: [],
    values: {
      additionalProperties: false,
      description:
        "Contribution: the profile of the own column group is what was added up.",
      title: "ProfilesRead",
      type: "object",
      properties: {},
      required: [],
    },
  },
  {
    stage: "closing",
    kind: "conclude",
    version: 1,
    role: "task",
    arrays: [],
    values: {
      $defs: {
        Figures: {
          additionalProperties: false,
          description:
            'Intrinsic figures of one partition; None where one is not defined or not known.\n\nn_clusters: clusters that have rows.\ninertia: sum of squared distances of rows to the mean of their cluster.\nsimplified_silhouette: mean over rows of (b - a) / max(a, b), a and b the distances\n    to the means of the own and of the nearest other cluster (E. R. Hruschka,\n    L. N. de Castro, R. J. G. B. Campello, "Evolutionary algorithms for clustering\n    gene-expression data", 2004).\nsilhouette: the same of mean distances to the rows (P. J. Rousseeuw, 1987).\ncalinski_harabasz: T. Caliński and J. Harabasz, 1974.\ndavies_bouldin: D. L. Davies and D. W. Bouldin, 1979.\npartition_coefficient: mean over rows of Σ_c μ_c² (J. C. Bezdek, 1973).\nxie_beni: X. L. Xie and G. Beni, 1991.\ncriterion: what the algorithm itself optimises, where that is not the inertia.\ngap, gap_error: the gap statistic and the standard error of its reference; gap_of_one\n    that of one cluster (R. Tibshirani, G. Walther, T. Hastie, 2001). Of several runs.\nstability: mean adjusted Rand index of clusterings of halves. Of several runs.\nprediction_strength: least share of pairs of a cluster of half the rows that the other\n    half keeps together (R. Tibshirani, G. Walther, 2005). Of several runs.\nn_iter: how many updates were made.\nconverged: whether they stopped before the last one that was allowed.',
          properties: {
            n_clusters: { minimum: 1, title: "N Clusters", type: "integer" },
            inertia: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Inertia",
            },
            simplified_silhouette: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Simplified Silhouette",
            },
            silhouette: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Silhouette",
            },
            calinski_harabasz: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Calinski Harabasz",
            },
            davies_bouldin: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Davies Bouldin",
            },
            partition_coefficient: {
              anyOf: [{ maximum: 1, minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Partition Coefficient",
            },
            xie_beni: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Xie Beni",
            },
            criterion: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Criterion",
            },
            gap: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Gap",
            },
            gap_error: {
              anyOf: [{ minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Gap Error",
            },
            gap_of_one: {
              anyOf: [{ type: "number" }, { type: "null" }],
              default: null,
              title: "Gap Of One",
            },
            stability: {
              anyOf: [{ maximum: 1, minimum: -1, type: "number" }, { type: "null" }],
              default: null,
              title: "Stability",
            },
            prediction_strength: {
              anyOf: [{ maximum: 1, minimum: 0, type: "number" }, { type: "null" }],
              default: null,
              title: "Prediction Strength",
            },
            n_iter: {
              anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }],
              default: null,
              title: "N Iter",
            },
            converged: {
              anyOf: [{ type: "boolean" }, { type: "null" }],
              default: null,
              title: "Converged",
            },
          },
          required: ["n_clusters"],
          title: "Figures",
          type: "object",
        },
      },
      additionalProperties: false,
      description:
        "Task of a session of several runs, and memory: sign, given the figures of all.\n\nfigures: of each run, in order; none where the protocol computes none.\nchosen: the number of the run whose results these are, from 0.",
      title: "Conclude",
      type: "object",
      properties: {
        figures: {
          items: { $ref: "#/$defs/Figures" },
          title: "Figures",
          type: "array",
        },
        chosen: { minimum: 0, title: "Chosen", type: "integer" },
      },
      required: ["figures", "chosen"],
    },
  },
];
