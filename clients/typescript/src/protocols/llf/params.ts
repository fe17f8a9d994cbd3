/** Parameters of `llf` that this client speaks, with their defaults. */

import { paramsOf, type Terms } from "../../roster/terms.ts";
import type { Table } from "../../session/contract.ts";
import { refuse } from "../../wire/problems.ts";
import { checkParams } from "../params.ts";

export interface LlfParams {
  readonly clusters: number;
  readonly init: "careful" | "given";
  readonly initialCentroids: readonly (readonly number[])[];
  readonly maxIterations: number;
  readonly tolerance: number;
  readonly leastParties: number;
  readonly minClusterRows: number;
  readonly publish: "centroids" | "sizes" | "nothing";
}

const SPOKEN = {
  n_clusters: "any",
  initial_centroids: "any",
  max_iter: "any",
  tol: "any",
  allow_two_parties: "any",
  min_cluster_rows: "any",
  publish: "any",
  alignment: "any",
  small_cohorts: "any", // of fuzzy c-means
  fuzzifier: "any",
  init: [null, "careful", "given"],
  n_init: [1],
  algorithm: ["cmeans"],
  scaling: ["standard"],
  output: ["labels"],
} as const;

interface Given {
  readonly n_clusters: number;
  readonly init?: "careful" | "given" | null;
  readonly initial_centroids?: readonly (readonly number[])[] | null;
  readonly max_iter?: number;
  readonly tol?: number;
  readonly allow_two_parties?: boolean;
  readonly min_cluster_rows?: number;
  readonly publish?: LlfParams["publish"];
}

/** The parameters of terms; refuses those that this client does not speak. */
export function readParams(terms: Terms): LlfParams {
  checkParams(paramsOf(terms), SPOKEN);
  // the analyst checked their form, and the coordinator signed them
  const given = paramsOf(terms) as unknown as Given;
  return {
    clusters: given.n_clusters,
    init: given.init ?? "careful",
    initialCentroids: given.initial_centroids ?? [],
    maxIterations: given.max_iter ?? 100,
    tolerance: given.tol ?? 1e-5,
    leastParties: given.allow_two_parties ? 2 : 3,
    minClusterRows: given.min_cluster_rows ?? 10,
    publish: given.publish ?? "centroids",
  };
}

/** Refuses a table from which fewer clusters can start than are asked for. */
export function checkRows({ clusters }: LlfParams, { rows }: Table): void {
  if (rows.length < clusters) {
    refuse("invalid-data", `${rows.length} rows start no ${clusters} clusters.`);
  }
}
