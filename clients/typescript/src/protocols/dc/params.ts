/** Parameters of `dc` that this client speaks, with their defaults. */

import { paramsOf, type Terms } from "../../roster/terms.ts";
import type { Pooled } from "../../stages/pooled.ts";
import { checkParams } from "../params.ts";

export interface DcParams {
  readonly anchors: "gaussian" | "rotated" | "uniform";
  /** How many anchors; unset for the number that follows from the columns. */
  readonly anchorRows: number | undefined;
  readonly scaling: "shared" | "center" | "local" | "none";
  readonly leavesOneOut: boolean;
}

interface Given {
  readonly anchor?: {
    readonly kind?: DcParams["anchors"];
    readonly n_rows?: number | null;
  };
  readonly scaling?: DcParams["scaling"];
  readonly dimensions?: "all" | "all_but_one";
}

const SPOKEN = {
  alignment: "any",
  anchor: "any",
  n_clusters: "any",
  n_init: "any",
  max_iter: "any",
  map: "any", // what the analyst makes of what it gets
  target: "any",
  algorithm: "any",
  scaling: "any",
  dimensions: "any",
  reduction: ["pca"],
  output: ["labels"],
  predictor: [false],
  jitter: [false],
} as const;
const SPOKEN_ANCHOR = {
  kind: ["gaussian", "rotated", "uniform"],
  n_rows: "any",
  ranges: ["pooled"],
} as const;

/** The parameters of terms; refuses those that this client does not speak. */
export function readParams(terms: Terms): DcParams {
  checkParams(paramsOf(terms), SPOKEN);
  // the analyst checked their form, and the coordinator signed them
  const given = paramsOf(terms) as Given;
  checkParams(given.anchor ?? {}, SPOKEN_ANCHOR);
  return {
    anchors: given.anchor?.kind ?? "gaussian",
    anchorRows: given.anchor?.n_rows ?? undefined,
    scaling: given.scaling ?? "shared",
    leavesOneOut: given.dimensions !== "all",
  };
}

/** What parties pool of their columns, given these parameters. */
export function pooledBy({ anchors, scaling }: DcParams): Pooled {
  const areUniform = anchors === "uniform";
  return { moments: scaling === "shared" || !areUniform, ranges: areUniform };
}
