/** Parameters of `dc` that this client supports, with their defaults. */

import type { Agreement } from "../../roster/roster.ts";
import { audiences, paramsOf, type Terms } from "../../roster/terms.ts";
import { sumOf } from "../../stages/pooled.ts";
import type { Pooled } from "../../stages/pooling.ts";
import { refuse } from "../../wire/problems.ts";
import { checkParams } from "../params.ts";

export interface DcParams {
  readonly anchors: "gaussian" | "rotated" | "uniform";
  /** How many anchors; unset for the number that follows from the columns. */
  readonly anchorRows: number | undefined;
  readonly target: "isometric" | "orthonormal";
  readonly scaling: "shared" | "center" | "local" | "none";
  readonly leavesOneOut: boolean;
  readonly clusters: number;
}

const LEAST_WIDTH = 2; // of one column every map is that column

interface Given {
  readonly n_clusters: number;
  readonly anchor?: {
    readonly kind?: DcParams["anchors"];
    readonly n_rows?: number | null;
  };
  readonly target?: DcParams["target"];
  readonly scaling?: DcParams["scaling"];
  readonly dimensions?: "all" | "all_but_one";
}

const SPOKEN = {
  alignment: "any",
  anchor: "any",
  n_clusters: "any",
  n_init: "any",
  max_iter: "any",
  target: "any",
  algorithm: "any",
  scaling: "any",
  dimensions: "any",
  output: ["labels"],
  predictor: [false],
} as const;
const SPOKEN_ANCHOR = {
  kind: ["gaussian", "rotated", "uniform"],
  n_rows: "any",
  ranges: ["pooled"],
} as const;

/** The parameters of terms; refuses those that this client does not support. */
export function readParams(terms: Terms): DcParams {
  checkParams(paramsOf(terms), SPOKEN);
  // the analyst checked their form, and the coordinator signed them
  const given = paramsOf(terms) as unknown as Given;
  checkParams(given.anchor ?? {}, SPOKEN_ANCHOR);
  return {
    anchors: given.anchor?.kind ?? "gaussian",
    anchorRows: given.anchor?.n_rows ?? undefined,
    target: given.target ?? "isometric",
    scaling: given.scaling ?? "shared",
    leavesOneOut: given.dimensions !== "all",
    clusters: given.n_clusters,
  };
}

/** Refuses a roster that these parameters do not fit. */
export function checkRoster(
  { leavesOneOut, clusters }: DcParams,
  { roster, terms }: Agreement,
): void {
  const narrow = roster.filter(({ n_columns }) => n_columns < LEAST_WIDTH);
  if (leavesOneOut && narrow.length) {
    const slots = narrow.map(({ slot }) => slot).join(", ");
    refuse("protocol-failed", `A single column of ${slots} would be sent unchanged.`);
  }
  const leaders = audiences(terms, "row").map(([first]) => first);
  const members = roster.filter(({ slot }) => leaders.includes(slot));
  const rows = sumOf(members.map(({ n_rows }) => n_rows));
  if (clusters > rows) {
    refuse("protocol-failed", `There are ${rows} rows for ${clusters} clusters.`);
  }
}

/** The moments that parties pool of their columns, given these parameters. */
export function pooledBy({ anchors, scaling }: DcParams): Pooled {
  const areUniform = anchors === "uniform";
  return { moments: scaling === "shared" || !areUniform, ranges: areUniform };
}
