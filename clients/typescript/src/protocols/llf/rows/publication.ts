/** The parts of a result that the terms publish, and the order of clusters. */

import { countCoinciding } from "../../../numerics/coincidence.ts";
import { roundToEven } from "../../../numerics/floats.ts";
import type { Points } from "../../../numerics/points.ts";
import { roundUp } from "../../../numerics/round-numbers.ts";
import { orderBySize } from "../cluster-order.ts";
import { isFuzzy, type LlfParams } from "../params.ts";
import type { Scaler } from "../scaler.ts";
import type { FinalMeans, Known } from "./following.ts";

const COARSEST_STEP = 1 / 20;
const ROWS_HIDDEN = 5;

export interface Published {
  readonly clusters: readonly number[];
  readonly centroids: Points;
  readonly sizes: readonly number[];
  readonly coinciding: number | null;
}

/** Rounded centroids, and sizes rounded to multiples of five, of clusters that are large enough. */
export function publish(
  params: LlfParams,
  scaler: Scaler,
  known: Known,
  { counts, means }: FinalMeans,
): Published {
  if (params.publish === "nothing") {
    return { clusters: [], centroids: [], sizes: [], coinciding: null };
  }
  const clusters = [...counts.keys()].filter(
    (c) => counts[c]! >= params.minClusterRows,
  );
  const points = isFuzzy(params) ? known.centroids : means;
  const shown = params.publish === "centroids" ? clusters : [];
  return {
    clusters,
    centroids: shown.map((c) => roundedMean(scaler, points[c]!, counts[c]!)),
    sizes: clusters.map((c) => inFives(counts[c]!)),
    coinciding: countCoinciding(known.centroids),
  };
}

/** The found number of each cluster, in the order of the new numbers. */
export function orderClusters(
  params: LlfParams,
  known: Known,
  found: readonly number[],
  { clusters, sizes, centroids }: Published,
): readonly number[] {
  if (params.publish === "nothing") return orderBySize(found, known.centroids);
  const pick = (chosen: readonly number[]) => chosen.map((c) => known.centroids[c]!);
  const shown = centroids.length ? centroids : pick(clusters);
  const others = [...found.keys()].filter((cluster) => !clusters.includes(cluster));
  const alike = others.map(() => 0);
  return [
    ...orderBySize(sizes, shown).map((place) => clusters[place]!),
    ...orderBySize(alike, pick(others)).map((place) => others[place]!),
  ];
}

function roundedMean(scaler: Scaler, mean: Float64Array, count: number): Float64Array {
  const share = Math.max(COARSEST_STEP, ROWS_HIDDEN / Math.max(count, 1));
  return scaler.undone(mean).map((x, f) => {
    const { step: unit } = scaler.limits[f]!;
    const step = roundUp(share * (unit / scaler.inverse[f]!));
    return roundToEven(x / step) * step;
  });
}

function inFives(size: number): number {
  return Math.max(5 * roundToEven(size / 5), 5);
}
