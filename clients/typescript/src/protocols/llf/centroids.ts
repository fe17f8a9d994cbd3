/** Moving centroids by totals: all parties find the same ones, bit for bit. */

import { equaliseCoordinates } from "../../numerics/coincidence.ts";
import type { Point, Points } from "../../numerics/points.ts";
import { derive, KeyedStream } from "../../secrecy/chance.ts";
import type { PartyContext } from "../../session/contract.ts";
import { squared } from "../../stages/pooled.ts";
import { concat, digest, lengthPrefixed } from "../../wire/bytes.ts";
import type { LlfParams } from "./params.ts";
import type { ClusterSums } from "./cluster-sums.ts";

const NUDGE = 1e-3;
const LENGTH_BYTES = 8;

export interface Moved {
  readonly centroids: Points;
  /** How far all moved together, but for those without rows. */
  readonly moved: number;
}

/**
 * The centroids after a total.
 *
 * One of fewer rows than `least` keeps its place; an empty one is moved by its nudge.
 *
 * @param steps a small step in each feature
 */
export function move(
  before: Points,
  { sums, counts }: ClusterSums,
  nudges: Points,
  steps: Float64Array,
  least: number,
): Moved {
  const means = before.map((centroid, c) => {
    const isLarge = counts[c]! > 0 && (least === 1 || counts[c]! >= least);
    return isLarge ? sums[c]!.map((sum) => sum / counts[c]!) : centroid;
  });
  const equal = equaliseCoordinates(means, steps);
  const squares = equal.map((point, c) =>
    point.reduce((sum, x, f) => sum + squared(x - before[c]![f]!), 0),
  );
  const centroids = equal.map((point, c) =>
    counts[c]! > 0 ? point : point.map((x, f) => x + nudges[c]![f]!),
  );
  return { centroids, moved: Math.sqrt(squares.reduce((sum, each) => sum + each, 0)) };
}

/** The small steps for empty clusters in an update, drawn from a shared stream. */
export function drawNudges(
  context: PartyContext,
  clusters: number,
  steps: Float64Array,
  update: number,
): Points {
  const { seed, session } = context.agreement.terms;
  const secret = lengthPrefixed(seed).slice(LENGTH_BYTES); // 8 bytes, big-endian
  const label = ["coterie/public-stream/1", session, "llf", "nudge"];
  const key = derive(secret, [...label, context.place.column, update]);
  const stream = new KeyedStream(key);
  return Array.from({ length: clusters }, () => nudgeOf(stream, steps));
}

/** One small step: uniform, as all have these numbers in the same bits. */
export function nudgeOf(stream: KeyedStream, steps: Float64Array): Point {
  return stream.uniform(steps.length).map((u, f) => NUDGE * steps[f]! * (2 * u - 1));
}

/** A digest over all bits of the centroids after an update. */
export function digestOf(centroids: Points, update: number): Uint8Array {
  const number = lengthPrefixed(update).slice(LENGTH_BYTES);
  const bits = centroids.map(
    ({ buffer, byteOffset, byteLength }) =>
      new Uint8Array(buffer, byteOffset, byteLength),
  );
  return digest(concat([number, ...bits]));
}

/** Whether the centroids have converged. */
export function isAtRest({ tolerance }: LlfParams, moved: number | null): boolean {
  return moved !== null && moved <= tolerance;
}
