/** k-means of weighted points. */

import type { KeyedStream } from "../secrecy/chance.ts";
import { nearest, squaredDistance, type Point, type Points } from "./points.ts";

const MOST_ITERATIONS = 300;

export interface KMeans {
  readonly centroids: Points;
  readonly inertia: number;
}

/**
 * Points that k-means++ draws.
 *
 * D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
 */
export function drawCentroids(
  points: Points,
  weights: readonly number[],
  clusters: number,
  stream: KeyedStream,
): Points {
  const drawn: Point[] = [];
  let away = points.map(() => 1);
  while (drawn.length < clusters) {
    const chosen =
      points[
        drawIndex(
          away.map((each, i) => each * weights[i]!),
          stream,
        )
      ]!;
    const toChosen = points.map((point) => squaredDistance(point, chosen));
    away = drawn.length
      ? away.map((each, i) => Math.min(each, toChosen[i]!))
      : toChosen;
    // every point coincides with a drawn one
    if (!away.some(Boolean)) away = points.map(() => 1);
    drawn.push(chosen);
  }
  return drawn;
}

/** Centroids moved to the weighted means of their points until they rest. */
export function lloyd(
  points: Points,
  weights: readonly number[],
  start: Points,
): KMeans {
  let centroids = start;
  let labels: readonly number[] = [];
  for (let step = 0; step < MOST_ITERATIONS; step++) {
    const now = points.map((point) => nearest(point, centroids));
    if (now.every((label, i) => label === labels[i])) break;
    labels = now;
    centroids = centroids.map((centroid, c) => {
      const own = points.flatMap((_, i) => (labels[i] === c ? [i] : []));
      return weightedMean(points, weights, own) ?? centroid;
    });
  }
  const inertia = points.reduce((sum, point, i) => {
    const at = centroids[nearest(point, centroids)]!;
    return sum + weights[i]! * squaredDistance(point, at);
  }, 0);
  return { centroids, inertia };
}

function drawIndex(weights: readonly number[], stream: KeyedStream): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const at = stream.uniform(1)[0]! * total;
  let sum = 0;
  const found = weights.findIndex((weight) => (sum += weight) >= at);
  return found < 0 ? weights.length - 1 : found;
}

function weightedMean(
  points: Points,
  weights: readonly number[],
  own: readonly number[],
): Point | undefined {
  const total = own.reduce((sum, i) => sum + weights[i]!, 0);
  if (total === 0) return undefined;
  return points[0]!.map(
    (_, f) => own.reduce((sum, i) => sum + weights[i]! * points[i]![f]!, 0) / total,
  );
}
