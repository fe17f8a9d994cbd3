/** In which order clusters are numbered. */

import type { Points } from "../../numerics/points.ts";

/**
 * Clusters by size, the largest first; equal ones by the centroid, feature by feature.
 *
 * @param centroids of all of them, or of none
 */
export function orderBySize(
  sizes: readonly number[],
  centroids: Points,
): readonly number[] {
  return [...sizes.keys()].sort((a, b) => {
    if (sizes[a] !== sizes[b]) return sizes[b]! - sizes[a]!;
    const differing = centroids[a]?.findIndex((x, f) => x !== centroids[b]![f]) ?? -1;
    return differing < 0
      ? a - b
      : centroids[a]![differing]! - centroids[b]![differing]!;
  });
}
