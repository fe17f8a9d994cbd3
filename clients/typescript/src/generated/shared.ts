/** Messages of several protocols. Written by scripts/generate.ts. */

import type { Bytes, Ints, Words } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export interface OpeningSign {
  readonly kind: "sign";
}

export interface OpeningSigned {
  readonly kind: "signed";
  readonly signature: string;
}

export interface ClosingConclude {
  readonly kind: "conclude";
  readonly figures: readonly Figures[];
  readonly chosen: number;
}

export interface ClosingSigned {
  readonly kind: "signed";
  readonly signature: string;
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

export interface SiteEffectsAddUp {
  readonly kind: "add-up";
  readonly phase: number;
  readonly total: Words;
}

export interface SiteEffectsShare {
  readonly kind: "share";
  readonly words: Words;
}

export interface ProfilesTakeLabels {
  readonly kind: "take-labels";
  readonly figures: readonly Figures[];
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

export interface SecretsShareSecrets {
  readonly kind: "share-secrets";
}

export interface SecretsSecretsShared {
  readonly kind: "secrets-shared";
}

export interface SecretsGroupSecret {
  readonly kind: "group-secret";
  readonly scope: "row" | "column";
  readonly secret: string;
}

export interface AlignmentCompareDigests {
  readonly kind: "compare-digests";
}

export interface AlignmentDigests {
  readonly kind: "digests";
  readonly rows: string;
  readonly columns: string;
}

export interface MomentsAddUp {
  readonly kind: "add-up";
  readonly phase: number;
  readonly total: Words;
}

export interface MomentsShare {
  readonly kind: "share";
  readonly words: Words;
}

export interface LinkageMaskKeys {
  readonly kind: "mask-keys";
}

export interface LinkageKeysMasked {
  readonly kind: "keys-masked";
}

export interface LinkagePassKeys {
  readonly kind: "pass-keys";
}

export interface LinkageKeysPassed {
  readonly kind: "keys-passed";
}

export interface LinkageShowTokens {
  readonly kind: "show-tokens";
}

export interface LinkageKeyTokens {
  readonly kind: "key-tokens";
  readonly tokens: Bytes;
}

export interface LinkageSelectLinked {
  readonly kind: "select-linked";
  readonly n_rows: Readonly<Record<string, number>>;
  readonly rows: Ints;
}

export interface LinkageDigests {
  readonly kind: "digests";
  readonly rows: string;
  readonly columns: string;
}

export interface LinkageMaskedKeys {
  readonly kind: "masked-keys";
  readonly n_masks: number;
  readonly points: Bytes;
}

export interface Figures {
  readonly n_clusters: number;
  readonly inertia: number | null;
  readonly simplified_silhouette: number | null;
  readonly silhouette: number | null;
  readonly calinski_harabasz: number | null;
  readonly davies_bouldin: number | null;
  readonly partition_coefficient: number | null;
  readonly xie_beni: number | null;
  readonly criterion: number | null;
  readonly aic: number | null;
  readonly bic: number | null;
  readonly icl: number | null;
  readonly entropy: number | null;
  readonly gap: number | null;
  readonly gap_error: number | null;
  readonly gap_of_one: number | null;
  readonly stability: number | null;
  readonly prediction_strength: number | null;
  readonly n_iter: number | null;
  readonly converged: boolean | null;
}

export const FIGURES = {
  additionalProperties: false,
  description:
    'Quality figures of one clustering; a figure is None if undefined or unknown.\n\nn_clusters: the number of non-empty clusters.\ninertia: the sum of squared distances of rows to the mean of their cluster.\nsimplified_silhouette: the mean over rows of (b - a) / max(a, b), where a and b are\n    the distances to the means of the row\'s own and of the nearest other cluster (E.\n    R. Hruschka, L. N. de Castro, R. J. G. B. Campello, "Evolutionary algorithms for\n    clustering gene-expression data", 2004).\nsilhouette: the same mean, where a and b are mean distances to the rows of these\n    clusters (P. J. Rousseeuw, 1987).\ncalinski_harabasz: T. Caliński and J. Harabasz, 1974.\ndavies_bouldin: D. L. Davies and D. W. Bouldin, 1979.\npartition_coefficient: the mean over rows of Σ_c μ_c² (J. C. Bezdek, 1973).\nxie_beni: X. L. Xie and G. Beni, 1991.\ncriterion: the value that the algorithm itself optimises, if it is not the inertia.\naic, bic, icl: information criteria of mixtures by Akaike (1974), Schwarz (1978),\n    and Biernacki, Celeux and Govaert (2000).\nentropy: the entropy of the memberships of a mixture, divided by its maximum n log\n    k; 0 if every row belongs to one cluster.\ngap, gap_error: the gap statistic and the standard error of its reference;\n    gap_of_one is the gap of a single cluster (R. Tibshirani, G. Walther, T. Hastie,\n    2001). Only for sessions with several runs.\nstability: the mean adjusted Rand index of clusterings of random halves of the rows.\n    Only for several runs.\nprediction_strength: the smallest proportion, over the clusters of half the rows, of\n    pairs that the other half keeps together (R. Tibshirani, G. Walther, 2005). Only\n    for several runs.\nn_iter: the number of updates.\nconverged: whether the algorithm stopped before its iteration limit.',
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
    aic: { anyOf: [{ type: "number" }, { type: "null" }], default: null, title: "Aic" },
    bic: { anyOf: [{ type: "number" }, { type: "null" }], default: null, title: "Bic" },
    icl: { anyOf: [{ type: "number" }, { type: "null" }], default: null, title: "Icl" },
    entropy: {
      anyOf: [{ maximum: 1, minimum: 0, type: "number" }, { type: "null" }],
      default: null,
      title: "Entropy",
    },
    gap: { anyOf: [{ type: "number" }, { type: "null" }], default: null, title: "Gap" },
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
};

export const OPENING_SIGN_TASK: MessageSpec = {
  stage: "opening",
  kind: "sign",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description: "A task that asks for a signature of the transcript so far.",
    title: "Sign",
    type: "object",
    properties: {},
    required: [],
  },
};

export const OPENING_SIGNED_CONTRIBUTION: MessageSpec = {
  stage: "opening",
  kind: "signed",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "A contribution with an Ed25519 signature (hex) by the party's roster key.",
    title: "TranscriptSignature",
    type: "object",
    properties: {
      signature: { pattern: "^[0-9a-f]{128}$", title: "Signature", type: "string" },
    },
    required: ["signature"],
  },
};

export const CLOSING_CONCLUDE_TASK: MessageSpec = {
  stage: "closing",
  kind: "conclude",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    $defs: { Figures: FIGURES },
    additionalProperties: false,
    description:
      "A task to sign, with the figures of all runs; the party remembers the task.\n\nfigures: the figures of each run, in order; empty if the protocol computes none, or\n    the session has one run.\nchosen: the number of the run to which the results belong, from 0.",
    title: "Conclude",
    type: "object",
    properties: {
      figures: { items: { $ref: "#/$defs/Figures" }, title: "Figures", type: "array" },
      chosen: { minimum: 0, title: "Chosen", type: "integer" },
    },
    required: ["figures", "chosen"],
  },
};

export const CLOSING_SIGNED_CONTRIBUTION: MessageSpec = {
  stage: "closing",
  kind: "signed",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "A contribution with an Ed25519 signature (hex) by the party's roster key.",
    title: "TranscriptSignature",
    type: "object",
    properties: {
      signature: { pattern: "^[0-9a-f]{128}$", title: "Signature", type: "string" },
    },
    required: ["signature"],
  },
};

export const FILLING_ADD_UP_TASK: MessageSpec = {
  stage: "filling",
  kind: "add-up",
  version: 1,
  role: "task",
  arrays: [{ name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description:
      "Task: send your share of a sum.\n\nphase: the number of the sum, from 1.\ntotal: the total of the previous sum; empty with the first.",
    title: "AddUp",
    type: "object",
    properties: { phase: { maximum: 64, minimum: 1, title: "Phase", type: "integer" } },
    required: ["phase"],
  },
};

export const FILLING_SHARE_CONTRIBUTION: MessageSpec = {
  stage: "filling",
  kind: "share",
  version: 1,
  role: "contribution",
  arrays: [{ name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description: "Contribution: the party's masked share of a sum.",
    title: "Share",
    type: "object",
    properties: {},
    required: [],
  },
};

export const SITE_EFFECTS_ADD_UP_TASK: MessageSpec = {
  stage: "site-effects",
  kind: "add-up",
  version: 1,
  role: "task",
  arrays: [{ name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description:
      "Task: send your share of a sum.\n\nphase: the number of the sum, from 1.\ntotal: the total of the previous sum; empty with the first.",
    title: "AddUp",
    type: "object",
    properties: { phase: { maximum: 64, minimum: 1, title: "Phase", type: "integer" } },
    required: ["phase"],
  },
};

export const SITE_EFFECTS_SHARE_CONTRIBUTION: MessageSpec = {
  stage: "site-effects",
  kind: "share",
  version: 1,
  role: "contribution",
  arrays: [{ name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description: "Contribution: the party's masked share of a sum.",
    title: "Share",
    type: "object",
    properties: {},
    required: [],
  },
};

export const PROFILES_TAKE_LABELS_TASK: MessageSpec = {
  stage: "profiles",
  kind: "take-labels",
  version: 1,
  role: "task",
  arrays: [{ name: "result", dtype: "uint8", shape: ["result"], bounds: [null, null] }],
  values: {
    $defs: { Figures: FIGURES },
    additionalProperties: false,
    description:
      "Task: compute the labels of the chosen run from the result, and store them.\n\nfigures, chosen: the figures of each run, and the number of the chosen run, as in\n    the task of the session's last round.\nresult: the slot's result, encoded.",
    title: "TakeLabels",
    type: "object",
    properties: {
      figures: { items: { $ref: "#/$defs/Figures" }, title: "Figures", type: "array" },
      chosen: { minimum: 0, title: "Chosen", type: "integer" },
    },
    required: ["figures", "chosen"],
  },
};

export const PROFILES_LABELS_TAKEN_CONTRIBUTION: MessageSpec = {
  stage: "profiles",
  kind: "labels-taken",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution: the number of clusters that this party can see in its outcome.",
    title: "LabelsTaken",
    type: "object",
    properties: {
      n_clusters: { maximum: 10000, minimum: 1, title: "N Clusters", type: "integer" },
    },
    required: ["n_clusters"],
  },
};

export const PROFILES_ADD_PROFILE_TASK: MessageSpec = {
  stage: "profiles",
  kind: "add-profile",
  version: 1,
  role: "task",
  arrays: [{ name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description:
      "Task: send a share of the next sum.\n\nn_clusters: the number of clusters over all parties.\ntotal: the total of the previous sum; empty with the first.",
    title: "AddProfile",
    type: "object",
    properties: {
      sum: { maximum: 6, minimum: 1, title: "Sum", type: "integer" },
      n_clusters: { maximum: 10000, minimum: 1, title: "N Clusters", type: "integer" },
    },
    required: ["sum", "n_clusters"],
  },
};

export const PROFILES_PROFILE_SHARE_CONTRIBUTION: MessageSpec = {
  stage: "profiles",
  kind: "profile-share",
  version: 1,
  role: "contribution",
  arrays: [{ name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description:
      "Contribution: the party's masked share of a sum; empty if its group is too small.",
    title: "ProfileShare",
    type: "object",
    properties: {},
    required: [],
  },
};

export const PROFILES_TELL_PROFILE_TASK: MessageSpec = {
  stage: "profiles",
  kind: "tell-profile",
  version: 1,
  role: "task",
  arrays: [{ name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description: "Task: compute the profile, given the total of the last sum.",
    title: "TellProfile",
    type: "object",
    properties: {},
    required: [],
  },
};

export const PROFILES_PROFILE_TOLD_CONTRIBUTION: MessageSpec = {
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
      "Contribution: the rounded profile as JSON, from leaders; empty from the others.",
    title: "ProfileTold",
    type: "object",
    properties: {},
    required: [],
  },
};

export const PROFILES_READ_PROFILES_TASK: MessageSpec = {
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
      "Task and memory: the rounded profiles, as JSON, of all groups that can pool sums.",
    title: "ReadProfiles",
    type: "object",
    properties: {},
    required: [],
  },
};

export const PROFILES_PROFILES_READ_CONTRIBUTION: MessageSpec = {
  stage: "profiles",
  kind: "profiles-read",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution: confirms that the published profile agrees with the group's totals.",
    title: "ProfilesRead",
    type: "object",
    properties: {},
    required: [],
  },
};

export const SECRETS_SHARE_SECRETS_TASK: MessageSpec = {
  stage: "secrets",
  kind: "share-secrets",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description: "Task: draw and send the secrets of the groups that you lead.",
    title: "ShareSecrets",
    type: "object",
    properties: {},
    required: [],
  },
};

export const SECRETS_SECRETS_SHARED_CONTRIBUTION: MessageSpec = {
  stage: "secrets",
  kind: "secrets-shared",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution: confirms that the party has sent its secrets, if it leads a group.",
    title: "SecretsShared",
    type: "object",
    properties: {},
    required: [],
  },
};

export const SECRETS_GROUP_SECRET_ENVELOPE: MessageSpec = {
  stage: "secrets",
  kind: "group-secret",
  version: 1,
  role: "envelope",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Envelope: the secret (32 bytes, hex) of a group to which the receiver belongs.",
    title: "GroupSecret",
    type: "object",
    properties: {
      scope: { enum: ["row", "column"], title: "Scope", type: "string" },
      secret: { pattern: "^[0-9a-f]{64}$", title: "Secret", type: "string" },
    },
    required: ["scope", "secret"],
  },
};

export const ALIGNMENT_COMPARE_DIGESTS_TASK: MessageSpec = {
  stage: "alignment",
  kind: "compare-digests",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description: "Task: send the digests of your row ids and column names.",
    title: "CompareDigests",
    type: "object",
    properties: {},
    required: [],
  },
};

export const ALIGNMENT_DIGESTS_CONTRIBUTION: MessageSpec = {
  stage: "alignment",
  kind: "digests",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution, envelope and memory: keyed digests (hex) of row ids and column names.\n\nIf rows have no ids, ``rows`` is the digest of the number of rows. If no other party\nholds the same rows, it is the digest of an empty list.",
    title: "Digests",
    type: "object",
    properties: {
      rows: { title: "Rows", type: "string" },
      columns: { title: "Columns", type: "string" },
    },
    required: ["rows", "columns"],
  },
};

export const ALIGNMENT_DIGESTS_ENVELOPE: MessageSpec = {
  stage: "alignment",
  kind: "digests",
  version: 1,
  role: "envelope",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution, envelope and memory: keyed digests (hex) of row ids and column names.\n\nIf rows have no ids, ``rows`` is the digest of the number of rows. If no other party\nholds the same rows, it is the digest of an empty list.",
    title: "Digests",
    type: "object",
    properties: {
      rows: { title: "Rows", type: "string" },
      columns: { title: "Columns", type: "string" },
    },
    required: ["rows", "columns"],
  },
};

export const MOMENTS_ADD_UP_TASK: MessageSpec = {
  stage: "moments",
  kind: "add-up",
  version: 1,
  role: "task",
  arrays: [{ name: "total", dtype: "uint64", shape: ["before"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description:
      "Task: send your share of a sum.\n\nphase: the number of the sum, from 1.\ntotal: the total of the previous sum; empty with the first.",
    title: "AddUp",
    type: "object",
    properties: { phase: { maximum: 64, minimum: 1, title: "Phase", type: "integer" } },
    required: ["phase"],
  },
};

export const MOMENTS_SHARE_CONTRIBUTION: MessageSpec = {
  stage: "moments",
  kind: "share",
  version: 1,
  role: "contribution",
  arrays: [{ name: "words", dtype: "uint64", shape: ["words"], bounds: [null, null] }],
  values: {
    additionalProperties: false,
    description: "Contribution: the party's masked share of a sum.",
    title: "Share",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_MASK_KEYS_TASK: MessageSpec = {
  stage: "linkage",
  kind: "mask-keys",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description: "Task: mask your ids or match key values for the next party.",
    title: "MaskKeys",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_KEYS_MASKED_CONTRIBUTION: MessageSpec = {
  stage: "linkage",
  kind: "keys-masked",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution: confirms that the masked values were sent to the next party.",
    title: "KeysMasked",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_PASS_KEYS_TASK: MessageSpec = {
  stage: "linkage",
  kind: "pass-keys",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Task: mask the list that you received, and pass it on to the next party.",
    title: "PassKeys",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_KEYS_PASSED_CONTRIBUTION: MessageSpec = {
  stage: "linkage",
  kind: "keys-passed",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution: confirms that the party passed the list on, if that was needed.",
    title: "KeysPassed",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_SHOW_TOKENS_TASK: MessageSpec = {
  stage: "linkage",
  kind: "show-tokens",
  version: 1,
  role: "task",
  arrays: [],
  values: {
    additionalProperties: false,
    description: "Task: mask the list that you received, and send its tokens.",
    title: "ShowTokens",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_KEY_TOKENS_CONTRIBUTION: MessageSpec = {
  stage: "linkage",
  kind: "key-tokens",
  version: 1,
  role: "contribution",
  arrays: [
    { name: "tokens", dtype: "uint8", shape: ["k", "t", 32], bounds: [null, null] },
  ],
  values: {
    additionalProperties: false,
    description:
      "Contribution: the tokens (k, t, 32) of the next party's rows, for each key.",
    title: "KeyTokens",
    type: "object",
    properties: {},
    required: [],
  },
};

export const LINKAGE_SELECT_LINKED_TASK: MessageSpec = {
  stage: "linkage",
  kind: "select-linked",
  version: 1,
  role: "task",
  arrays: [{ name: "rows", dtype: "int64", shape: ["t"], bounds: [0, null] }],
  values: {
    additionalProperties: false,
    description:
      "Task: select the linked rows.\n\nrows: their positions in the slot's list, in the common order of the row group. The\n    array is empty for a slot that is alone in its row group, since all of its rows\n    take part.\nn_rows: the number of participating rows of each slot.",
    title: "SelectLinked",
    type: "object",
    properties: {
      n_rows: {
        additionalProperties: { type: "integer" },
        title: "N Rows",
        type: "object",
      },
    },
    required: ["n_rows"],
  },
};

export const LINKAGE_DIGESTS_CONTRIBUTION: MessageSpec = {
  stage: "linkage",
  kind: "digests",
  version: 1,
  role: "contribution",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution, envelope and memory: keyed digests (hex) of row ids and column names.\n\nIf rows have no ids, ``rows`` is the digest of the number of rows. If no other party\nholds the same rows, it is the digest of an empty list.",
    title: "Digests",
    type: "object",
    properties: {
      rows: { title: "Rows", type: "string" },
      columns: { title: "Columns", type: "string" },
    },
    required: ["rows", "columns"],
  },
};

export const LINKAGE_MASKED_KEYS_ENVELOPE: MessageSpec = {
  stage: "linkage",
  kind: "masked-keys",
  version: 1,
  role: "envelope",
  arrays: [
    { name: "points", dtype: "uint8", shape: ["k", "t", 32], bounds: [null, null] },
  ],
  values: {
    additionalProperties: false,
    description:
      "Envelope and memory: a party's list of masked ids or match key values.\n\npoints: uint8 (k, t, 32); the masked value of each key and row.\nn_masks: the number of parties that have masked the list.",
    title: "MaskedKeys",
    type: "object",
    properties: { n_masks: { minimum: 1, title: "N Masks", type: "integer" } },
    required: ["n_masks"],
  },
};

export const LINKAGE_DIGESTS_ENVELOPE: MessageSpec = {
  stage: "linkage",
  kind: "digests",
  version: 1,
  role: "envelope",
  arrays: [],
  values: {
    additionalProperties: false,
    description:
      "Contribution, envelope and memory: keyed digests (hex) of row ids and column names.\n\nIf rows have no ids, ``rows`` is the digest of the number of rows. If no other party\nholds the same rows, it is the digest of an empty list.",
    title: "Digests",
    type: "object",
    properties: {
      rows: { title: "Rows", type: "string" },
      columns: { title: "Columns", type: "string" },
    },
    required: ["rows", "columns"],
  },
};
