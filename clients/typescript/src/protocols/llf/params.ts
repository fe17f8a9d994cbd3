/** Parameters of `llf` that this client supports, with their defaults. */

import type { Agreement } from "../../roster/roster.ts";
import { audiences, paramsOf, type Terms } from "../../roster/terms.ts";
import type { Table } from "../../session/contract.ts";
import { sumOf } from "../../stages/pooled.ts";
import { refuse } from "../../wire/problems.ts";
import { checkParams } from "../params.ts";
import { exponentBySize } from "./fuzziness.ts";

export interface LlfParams {
  readonly clusters: number;
  /** The clusters of all runs together. */
  readonly clustersOfRuns: number;
  readonly init: "careful" | "random_party" | "bounds" | "given";
  readonly scaling: "standard" | "minmax" | "none";
  readonly initialCentroids: readonly (readonly number[])[];
  readonly maxIterations: number;
  readonly tolerance: number;
  readonly leastParties: number;
  /** How many parties suffice where others are late; unset where all are needed. */
  readonly quorum: number | undefined;
  readonly minClusterRows: number;
  readonly publish: "centroids" | "sizes" | "nothing";
  /** λ of degrees; unset where each row is in one cluster. */
  readonly fuzzifier: number | undefined;
  readonly allowsSmallCohorts: boolean;
}

const SPOKEN = {
  n_clusters: "any",
  initial_centroids: "any",
  max_iter: "any",
  tol: "any",
  allow_two_parties: "any",
  quorum: "any",
  min_cluster_rows: "any",
  publish: "any",
  alignment: "any",
  small_cohorts: "any",
  fuzzifier: "any",
  init: [null, "careful", "random_party", "bounds", "given"],
  algorithm: ["cmeans", "fuzzy_cmeans"],
  scaling: ["standard", "minmax", "none"],
  output: ["labels"],
} as const;

interface Given {
  readonly n_clusters: number;
  readonly init?: LlfParams["init"] | null;
  readonly scaling?: LlfParams["scaling"];
  readonly initial_centroids?: readonly (readonly number[])[] | null;
  readonly max_iter?: number;
  readonly tol?: number;
  readonly allow_two_parties?: boolean;
  readonly quorum?: number | null;
  readonly min_cluster_rows?: number;
  readonly publish?: LlfParams["publish"];
  readonly algorithm?: "cmeans" | "fuzzy_cmeans";
  readonly fuzzifier?: number | "auto";
  readonly small_cohorts?: "refuse" | "allow";
}

/** The parameters of terms; refuses those that this client does not support. */
export function readGiven(terms: Terms): Given {
  checkParams(paramsOf(terms), SPOKEN);
  // the analyst checked their form, and the coordinator signed them
  return paramsOf(terms) as unknown as Given;
}

/**
 * The parameters of each run, with what follows from the numbers of rows and columns of
 * all parties.
 */
export function settle(given: Given, agreement: Agreement): readonly LlfParams[] {
  const { fuzzifier = "auto" } = given;
  const exponent =
    fuzzifier === "auto"
      ? exponentBySize(sizeOf(agreement, "row"), sizeOf(agreement, "column"))
      : fuzzifier;
  const { n_clusters: runs } = agreement.terms.evaluation ?? {
    n_clusters: [given.n_clusters],
  };
  return runs.map((clusters) => ({
    clusters,
    clustersOfRuns: sumOf(runs),
    init: given.init ?? "careful",
    scaling: given.scaling ?? "standard",
    initialCentroids: given.initial_centroids ?? [],
    maxIterations: given.max_iter ?? 100,
    tolerance: given.tol ?? 1e-5,
    leastParties: given.allow_two_parties ? 2 : 3,
    quorum: given.quorum ?? undefined,
    minClusterRows: given.min_cluster_rows ?? 10,
    publish: given.publish ?? "centroids",
    fuzzifier: given.algorithm === "fuzzy_cmeans" ? exponent : undefined,
    allowsSmallCohorts: given.small_cohorts === "allow",
  }));
}

/** Whether a start comes from rows of parties, in a stage of its own. */
export function isFromParties({ init }: LlfParams): boolean {
  return init === "careful" || init === "random_party";
}

/** Whether rows belong to all clusters by degrees. */
export function isFuzzy({ fuzzifier }: LlfParams): boolean {
  return fuzzifier !== undefined;
}

/** Of how many rows the centroid of a cluster moves; that of degrees always does. */
export function leastRowsMoved(params: LlfParams): number {
  return isFuzzy(params) ? 1 : params.minClusterRows;
}

/** Refuses a table from which fewer clusters can start than are asked for. */
export function checkRows({ clusters }: LlfParams, { rows }: Table): void {
  if (rows.length < clusters) {
    refuse(
      "invalid-data",
      `${rows.length} rows are too few to start ${clusters} clusters.`,
    );
  }
}

/** How many rows, or columns, all parties joined with together. */
function sizeOf({ terms, roster }: Agreement, scope: "row" | "column"): number {
  const leaders = audiences(terms, scope).map(([first]) => first);
  const members = roster.filter(({ slot }) => leaders.includes(slot));
  return sumOf(members.map((each) => (scope === "row" ? each.n_rows : each.n_columns)));
}
