/**
 * Figures that a party compares between totals over the same rows.
 *
 * Rows stay where they are. So a cluster has no fewer rows than this party has there, all
 * clusters together have the same sums as before, and around the centroids in between
 * rows cost no more than in the clusters before: each goes to the nearest.
 */

import type { Points } from "../../../numerics/points.ts";
import { sumOf } from "../../../stages/pooled.ts";
import { refuse } from "../../../wire/problems.ts";
import type { ClusterSums } from "../cluster-sums.ts";
import type { Scaler } from "../scaler.ts";

const ROUNDING = 1e-9;

/** By how much rounding may set totals apart: per feature, and in squares. */
export interface Slack {
  readonly sums: Float64Array;
  readonly squares: number;
}

export function slackOf(scaler: Scaler, units: Float64Array, rows: number): Slack {
  const squares = sumOf(scaler.limits.map((each) => each.squares));
  return { sums: units.map((unit) => (2 * rows) / unit), squares };
}

export function checkOwn(counts: readonly number[], own: readonly number[]): void {
  if (own.some((count, cluster) => counts[cluster]! < count)) {
    refuse(
      "protocol-failed",
      "A total counts fewer rows of a cluster than this party has there.",
    );
  }
}

/** Refuses a total of which all clusters together are other rows than before. */
export function checkSameRows(
  before: ClusterSums,
  now: ClusterSums,
  slack: Slack,
): void {
  const all = ({ sums }: ClusterSums, f: number) => sumOf(sums.map((sum) => sum[f]!));
  if (slack.sums.some((most, f) => Math.abs(all(now, f) - all(before, f)) > most)) {
    refuse("protocol-failed", "A total covers different rows from an earlier total.");
  }
}

/** Refuses a total around centroids by which rows did not go to the nearest. */
export function checkNoFarther(
  before: ClusterSums,
  now: ClusterSums,
  centroids: Points,
  slack: Slack,
): void {
  const rows = now.sums.map((sum, c) => sum.map((x, f) => x - before.sums[c]![f]!));
  const squares = centroids.map((v) => sumOf([...v.map((x) => x * x)]));
  const rise = centroids.map((v, c) => {
    const moved = sumOf([...v.map((x, f) => x * rows[c]![f]!)]);
    return (now.counts[c]! - before.counts[c]!) * squares[c]! - 2 * moved;
  });
  const largest = sumOf(now.counts) * Math.max(0, ...squares);
  const rounded = [...slack.sums].map(
    (most, f) => 2 * most * sumOf(centroids.map((v) => Math.abs(v[f]!))),
  );
  if (sumOf(rise) > ROUNDING * (slack.squares + largest) + sumOf(rounded)) {
    refuse(
      "protocol-failed",
      "A total puts rows farther from their centroids than the previous total.",
    );
  }
}
