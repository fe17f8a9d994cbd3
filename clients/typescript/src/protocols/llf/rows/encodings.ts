/** How the three sums of split rows stand as words. */

import type { Points } from "../../../numerics/points.ts";
import {
  EXACT_BITS,
  finest,
  FixedPoint,
  RING_BITS,
  WHOLE,
} from "../../../secrecy/fixed-point.ts";
import { sumOf } from "../../../stages/pooled.ts";
import { refuse } from "../../../wire/problems.ts";
import type { ClusterSums } from "../cluster-sums.ts";
import { isFuzzy, type LlfParams } from "../params.ts";
import type { Scaler } from "../scaler.ts";

const ROUNDING = 1e-9;

/** Sums of clusters: k·F words, then a word for how much each of them counts. */
export class SumsEncoding {
  readonly units: Float64Array;
  readonly weightUnit: number;
  readonly #sums: FixedPoint;
  readonly #weights: FixedPoint;

  private constructor(scaler: Scaler, bits: number, weights: FixedPoint) {
    const clusters = weights.units.length;
    const ofCluster = scaler.limits.map(({ sum }) => sum);
    const bounds = Array.from({ length: clusters }, () => ofCluster).flat();
    this.#sums = new FixedPoint(bounds, finest(bits));
    this.#weights = weights;
    this.units = this.#sums.units.subarray(0, scaler.width);
    this.weightUnit = weights.units[0]!;
  }

  /** Of updates: counts are whole, degrees to the power λ are not. */
  static ofUpdates(params: LlfParams, scaler: Scaler, rows: number): SumsEncoding {
    const bounds = new Array<number>(params.clusters).fill(rows);
    const unit = isFuzzy(params) ? finest(EXACT_BITS) : WHOLE;
    return new SumsEncoding(scaler, EXACT_BITS, new FixedPoint(bounds, unit));
  }

  /** Of the final labels. */
  static ofLabels(params: LlfParams, scaler: Scaler, rows: number): SumsEncoding {
    const bounds = new Array<number>(params.clusters).fill(rows);
    return new SumsEncoding(scaler, RING_BITS, new FixedPoint(bounds, WHOLE));
  }

  /** How many words a total has, without its tag. */
  get size(): number {
    return this.#sums.units.length + this.#weights.units.length;
  }

  /** Words of sums in whole units. */
  encode({ sums, counts }: ClusterSums): BigUint64Array {
    const whole = Float64Array.from(sums.flatMap((sum) => [...sum]));
    const weights = this.#weights.encodeUnits(Float64Array.from(counts));
    return joined(this.#sums.encodeUnits(whole), weights);
  }

  fits(words: BigUint64Array): boolean {
    const [sums, weights] = this.#split(words);
    return this.#sums.fits(sums) && this.#weights.fits(weights);
  }

  /** A total; throws `protocol-failed` unless it counts the rows that there are. */
  decode(words: BigUint64Array, rows: number): ClusterSums {
    const [head, tail] = this.#split(words);
    const flat = this.#sums.decode(head);
    const counts = [...this.#weights.decode(tail)];
    if (this.weightUnit === 1) checkCounts(counts, rows);
    else checkDegrees(counts, rows);
    const width = this.units.length;
    const sums = counts.map((_, c) => flat.slice(c * width, (c + 1) * width));
    return { sums, counts };
  }

  #split(words: BigUint64Array): [BigUint64Array, BigUint64Array] {
    const size = this.#sums.units.length;
    return [words.subarray(0, size), words.subarray(size)];
  }
}

/** Sums of the final labels around the means of their clusters. */
export interface Around {
  readonly sizes: readonly number[];
  readonly squares: readonly number[];
  readonly distances: readonly number[];
  readonly silhouettes: number;
  /** Σ μ² ‖x - v‖² and Σ μ² around the centroids; unset if rows have no degrees. */
  readonly degrees: readonly number[];
}

/** The encoding of {@link Around} in words: k sizes, then real numbers. */
export class AroundEncoding {
  readonly #sizes: FixedPoint;
  readonly #reals: FixedPoint;

  /** `centroids`: those around which rows have degrees; unset if they have none. */
  constructor(scaler: Scaler, means: Points, centroids: Points, rows: number) {
    const farthest = scaler.farthestFrom(means);
    const squares = means.map(() => farthest);
    const ofDegrees = centroids.length ? [scaler.farthestFrom(centroids), 1] : [];
    const bounds = [...squares, ...squares.map(Math.sqrt), 1, ...ofDegrees];
    this.#reals = new FixedPoint(bounds.map((bound) => rows * bound));
    this.#sizes = new FixedPoint(new Array<number>(means.length).fill(rows), WHOLE);
  }

  /** How many words a total has, without its tag. */
  get size(): number {
    return this.#sizes.units.length + this.#reals.units.length;
  }

  encode({ sizes, squares, distances, silhouettes, degrees }: Around): BigUint64Array {
    const reals = [...squares, ...distances, silhouettes, ...degrees];
    return joined(
      this.#sizes.encodeUnits(Float64Array.from(sizes)),
      this.#reals.encode(reals),
    );
  }

  fits(words: BigUint64Array): boolean {
    const [sizes, reals] = this.#split(words);
    return this.#sizes.fits(sizes) && this.#reals.fits(reals);
  }

  /** A total; throws `protocol-failed` where it cannot be one. */
  decode(words: BigUint64Array, rows: number): Around {
    const [head, tail] = this.#split(words);
    const [sizes, reals] = [[...this.#sizes.decode(head)], this.#reals.decode(tail)];
    checkCounts(sizes, rows);
    const k = sizes.length;
    if (reals.some((sum, place) => sum < 0 && place !== 2 * k)) {
      refuse("protocol-failed", "A sum is negative.");
    }
    return {
      sizes,
      squares: [...reals.subarray(0, k)],
      distances: [...reals.subarray(k, 2 * k)],
      silhouettes: reals[2 * k]!,
      degrees: [...reals.subarray(2 * k + 1)],
    };
  }

  #split(words: BigUint64Array): [BigUint64Array, BigUint64Array] {
    const clusters = this.#sizes.units.length;
    return [words.subarray(0, clusters), words.subarray(clusters)];
  }
}

function checkCounts(counts: readonly number[], rows: number): void {
  if (sumOf(counts) !== rows || counts.some((count) => count < 0)) {
    refuse("protocol-failed", "The counts of a total do not add up to the rows.");
  }
}

function checkDegrees(degrees: readonly number[], rows: number): void {
  const most = rows * (1 + ROUNDING);
  if (sumOf(degrees) > most || degrees.some((degree) => degree < 0)) {
    refuse("protocol-failed", "A total counts more rows than the parties hold.");
  }
}

function joined(a: BigUint64Array, b: BigUint64Array): BigUint64Array {
  const both = new BigUint64Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
