/** Passes over a party's rows: labels, and sums of what they label. */

import { roundToEven } from "../../../numerics/floats.ts";
import {
  nearest,
  squaredDistance,
  type Point,
  type Points,
} from "../../../numerics/points.ts";
import { squared } from "../../../stages/pooled.ts";
import { sumByLabel, type ClusterSums } from "../cluster-sums.ts";
import { checkOwnRows, checkValues } from "./cohorts.ts";
import { degreesOf, raised } from "../fuzziness.ts";
import type { Around, SumsEncoding } from "./encodings.ts";
import type { FinalMeans, RowsRound } from "./following.ts";

/** A party's sums around centroids, in whole units; see {@link checkOwnRows}. */
export function sumRows(
  { context, params, updates, ownShare }: RowsRound,
  rows: Points,
  centroids: Points,
) {
  const { fuzzifier } = params;
  if (fuzzifier === undefined) return sumNearest(rows, centroids, updates.units);
  checkOwnRows(params, rows.length, updates.units.length);
  if (!ownShare.asked) checkValues(params, context.agreement, rows);
  return sumByDegrees(rows, centroids, updates, fuzzifier);
}

/** Sums in whole units of the rows nearest to each centroid: one rounding per row. */
function sumNearest(rows: Points, centroids: Points, units: Float64Array): ClusterSums {
  return sumByLabel(rows, labelRows(rows, centroids), centroids.length, (x, f) =>
    roundToEven(x * units[f]!),
  );
}

/** Sums in whole units of all rows, in each cluster by their degrees. */
function sumByDegrees(
  rows: Points,
  centroids: Points,
  { units, weightUnit }: SumsEncoding,
  fuzzifier: number,
): ClusterSums {
  const sums = centroids.map(({ length }) => new Float64Array(length));
  const counts = centroids.map(() => 0);
  for (const row of rows) {
    degreesOf(row, centroids, fuzzifier).degrees.forEach((degree, c) => {
      const weight = raised(degree, fuzzifier);
      counts[c]! += roundToEven(weight * weightUnit);
      row.forEach((x, f) => (sums[c]![f]! += roundToEven(weight * x * units[f]!)));
    });
  }
  return { sums, counts };
}

/** Sums in whole units of the rows of each label: one rounding per sum. */
export function sumLabelled(
  rows: Points,
  labels: readonly number[],
  clusters: number,
  units: Float64Array,
): ClusterSums {
  const { sums, counts } = sumByLabel(rows, labels, clusters);
  const whole = sums.map((sum) => sum.map((x, f) => roundToEven(x * units[f]!)));
  return { sums: whole, counts };
}

/** The nearest centroid of each row. */
export function labelRows(rows: Points, centroids: Points): readonly number[] {
  return rows.map((row) => nearest(row, centroids));
}

/** `counts`: rows of each cluster over all parties. */
export function sumAround(
  rows: Points,
  labels: readonly number[],
  { means, counts }: FinalMeans,
): Omit<Around, "degrees"> {
  const sizes = counts.map(() => 0);
  const squares = [...sizes];
  const distances = [...sizes];
  let silhouettes = 0;
  rows.forEach((row, place) => {
    const own = labels[place]!;
    const within = squaredDistance(row, means[own]!);
    sizes[own]! += 1;
    squares[own]! += within;
    distances[own]! += Math.sqrt(within);
    if (counts[own]! > 1) silhouettes += silhouetteOf(row, own, within, means, counts);
  });
  return { sizes, squares, distances, silhouettes };
}

/** Σ μ² ‖x - v‖² and Σ μ² of these rows around centroids. */
export function sumDegrees(
  rows: Points,
  centroids: Points,
  fuzzifier: number,
): readonly number[] {
  let [compactness, squares] = [0, 0];
  for (const row of rows) {
    const found = degreesOf(row, centroids, fuzzifier);
    found.degrees.forEach((degree, c) => {
      compactness += squared(degree) * found.squares[c]!;
      squares += squared(degree);
    });
  }
  return [compactness, squares];
}

/** (b - a) / max(a, b), by distances to the means of the own and the nearest other. */
function silhouetteOf(
  row: Point,
  own: number,
  within: number,
  means: Points,
  counts: readonly number[],
): number {
  const others = means
    .filter((_, cluster) => cluster !== own && counts[cluster]! > 0)
    .map((mean) => squaredDistance(row, mean));
  const [a, b] = [Math.sqrt(within), Math.sqrt(Math.min(...others))];
  const larger = Math.max(a, b);
  return larger > 0 && Number.isFinite(b) ? (b - a) / larger : 0;
}
