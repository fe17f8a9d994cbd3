/** How the three sums of split rows stand as words. */

import type { Points } from "../../../numerics/points.ts";
import {
  EXACT_BITS,
  FixedPoint,
  RING_BITS,
  signedOf,
} from "../../../secrecy/fixed-point.ts";
import { refuse } from "../../../wire/problems.ts";
import type { ClusterSums } from "../cluster-sums.ts";
import type { Scaler } from "../scaler.ts";

const ROUNDINGS = 2 ** 20;

/** Sums and counts of clusters: k·F words, then k; `bits` as in fixed point. */
export class SumsEncoding {
  readonly units: Float64Array;
  readonly #sums: FixedPoint;
  readonly #rows: number;
  readonly #size: number;

  constructor(scaler: Scaler, clusters: number, rows: number, bits: number) {
    this.#size = clusters * scaler.width;
    this.#rows = rows;
    this.#sums = new FixedPoint(
      new Float64Array(this.#size).fill(scaler.sumLimit),
      bits,
    );
    this.units = this.#sums.units.subarray(0, scaler.width);
  }

  static ofUpdates(scaler: Scaler, clusters: number, rows: number): SumsEncoding {
    return new SumsEncoding(scaler, clusters, rows, EXACT_BITS);
  }

  static ofLabels(scaler: Scaler, clusters: number, rows: number): SumsEncoding {
    return new SumsEncoding(scaler, clusters, rows, RING_BITS);
  }

  /** Words of sums in whole units. */
  encode({ sums, counts }: ClusterSums): BigUint64Array {
    const whole = Float64Array.from(sums.flatMap((sum) => [...sum]));
    return joined(this.#sums.encodeUnits(whole), countWords(counts));
  }

  fits(words: BigUint64Array): boolean {
    const [sums, counts] = this.#split(words);
    return this.#sums.fits(sums) && areCounts(counts, this.#rows);
  }

  /** A total; throws `protocol-failed` unless it counts the rows that there are. */
  decode(words: BigUint64Array): ClusterSums {
    const [head, tail] = this.#split(words);
    const [flat, counts] = [this.#sums.decode(head), Array.from(tail, signedOf)];
    checkCounts(counts, this.#rows);
    const width = this.units.length;
    const sums = counts.map((_, c) => flat.slice(c * width, (c + 1) * width));
    return { sums, counts };
  }

  #split(words: BigUint64Array): [BigUint64Array, BigUint64Array] {
    return [words.subarray(0, this.#size), words.subarray(this.#size)];
  }
}

/** Sums of the final labels around the means of their clusters. */
export interface Around {
  readonly sizes: readonly number[];
  readonly squares: readonly number[];
  readonly distances: readonly number[];
  readonly silhouettes: number;
}

/** How {@link Around} stands as words: k sizes, then 2k + 1 real numbers. */
export class AroundEncoding {
  readonly #reals: FixedPoint;
  readonly #clusters: number;
  readonly #rows: number;

  constructor(scaler: Scaler, means: Points, rows: number) {
    const farthest = scaler.farthestFrom(means);
    const squares = means.map(() => farthest);
    const bounds = [...squares, ...squares.map(Math.sqrt), 1];
    this.#reals = new FixedPoint(bounds.map((bound) => rows * bound));
    this.#clusters = means.length;
    this.#rows = rows;
  }

  encode({ sizes, squares, distances, silhouettes }: Around): BigUint64Array {
    const reals = this.#reals.encode([...squares, ...distances, silhouettes]);
    return joined(countWords(sizes), reals);
  }

  fits(words: BigUint64Array): boolean {
    const [sizes, reals] = this.#split(words);
    return areCounts(sizes, this.#rows) && this.#reals.fits(reals);
  }

  /** A total; throws `protocol-failed` where it cannot be one. */
  decode(words: BigUint64Array): Around {
    const [head, tail] = this.#split(words);
    const [sizes, reals] = [Array.from(head, signedOf), [...this.#reals.decode(tail)]];
    const silhouettes = reals.pop()!;
    checkCounts(sizes, this.#rows);
    if (reals.some((sum) => sum < 0)) refuse("protocol-failed", "A sum is negative.");
    const k = this.#clusters;
    return {
      sizes,
      squares: reals.slice(0, k),
      distances: reals.slice(k),
      silhouettes,
    };
  }

  #split(words: BigUint64Array): [BigUint64Array, BigUint64Array] {
    return [words.subarray(0, this.#clusters), words.subarray(this.#clusters)];
  }
}

function countWords(counts: readonly number[]): BigUint64Array {
  return BigUint64Array.from(counts, BigInt);
}

function areCounts(words: BigUint64Array, rows: number): boolean {
  return words.every((word) => Math.abs(signedOf(word)) <= rows + ROUNDINGS);
}

function checkCounts(counts: readonly number[], rows: number): void {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total !== rows || counts.some((count) => count < 0)) {
    refuse("protocol-failed", "The counts of a total do not add up to the rows.");
  }
}

function joined(a: BigUint64Array, b: BigUint64Array): BigUint64Array {
  const both = new BigUint64Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
