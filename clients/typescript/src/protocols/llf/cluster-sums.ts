/** Sums of the rows of each cluster. */

import type { Points } from "../../numerics/points.ts";

/** Sums of each cluster, and how many rows it has, or the sum of their degrees. */
export interface ClusterSums {
  readonly sums: Points;
  readonly counts: readonly number[];
}

/** `term`: the function of a scaled value that is added up. */
export function sumByLabel(
  rows: Points,
  labels: readonly number[],
  clusters: number,
  term: (x: number, feature: number) => number = (x) => x,
): ClusterSums {
  const width = rows[0]?.length ?? 0;
  const sums = Array.from({ length: clusters }, () => new Float64Array(width));
  const counts = countLabels(labels, clusters);
  rows.forEach((row, place) => {
    const sum = sums[labels[place]!]!;
    row.forEach((x, f) => (sum[f]! += term(x, f)));
  });
  return { sums, counts };
}

/** `weights`: the weight of each row in each cluster. */
export function sumByWeight(
  rows: Points,
  weights: Points,
  clusters: number,
): ClusterSums {
  const width = rows[0]?.length ?? 0;
  const sums = Array.from({ length: clusters }, () => new Float64Array(width));
  const counts = new Array<number>(clusters).fill(0);
  rows.forEach((row, place) => {
    weights[place]!.forEach((weight, c) => {
      counts[c]! += weight;
      row.forEach((x, f) => (sums[c]![f]! += weight * x));
    });
  });
  return { sums, counts };
}

/** How many rows have each label. */
export function countLabels(labels: readonly number[], clusters: number): number[] {
  const counts = new Array<number>(clusters).fill(0);
  for (const label of labels) counts[label]! += 1;
  return counts;
}
