/** Passes over a party's rows: labels, and sums of what they label. */

import { roundToEven } from "../../../numerics/floats.ts";
import {
  nearest,
  squaredDistance,
  type Point,
  type Points,
} from "../../../numerics/points.ts";
import { sumByLabel, type ClusterSums } from "../cluster-sums.ts";
import type { Around } from "./encodings.ts";

/** Sums in whole units of the rows nearest to each centroid: one rounding per row. */
export function sumNearest(
  rows: Points,
  centroids: Points,
  units: Float64Array,
): ClusterSums {
  return sumByLabel(rows, labelRows(rows, centroids), centroids.length, (x, f) =>
    roundToEven(x * units[f]!),
  );
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
  means: Points,
  counts: readonly number[],
): Around {
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
