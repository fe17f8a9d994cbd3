/** Real numbers as words of 64 bits, so that sums are exact (spec, section 10). */

import { exponentOf, roundToEven } from "../numerics/floats.ts";
import { refuse } from "../wire/problems.ts";

/** Bits of the largest sum that a tag can tell from any other. */
export const RING_BITS = 59;
/** Bits of the largest sum whose float64 partial sums are exact, in any order. */
export const EXACT_BITS = 52;

const MOST_BITS = 900;
const ROUNDINGS = 2 ** 20;

type UnitOf = (bound: number) => number;

/** The finest unit with which a sum has so many bits. */
export function finest(bits: number): UnitOf {
  return (bound) => 2 ** Math.min(bits - exponentOf(bound), MOST_BITS);
}

/** Counts are whole. */
export const WHOLE: UnitOf = () => 1;

export class FixedPoint {
  /** Units in 1, per item. */
  readonly units: Float64Array;
  readonly #most: Float64Array;

  /**
   * `bounds`: the largest absolute value of each sum, above zero; `unitOf`: how many units
   * there are in 1 under a bound.
   */
  constructor(bounds: ArrayLike<number>, unitOf: UnitOf = finest(RING_BITS)) {
    this.units = Float64Array.from(bounds, unitOf);
    this.#most = this.units.map((unit, item) => bounds[item]! * unit + ROUNDINGS);
  }

  encode(numbers: ArrayLike<number>): BigUint64Array {
    const { units } = this;
    return this.encodeUnits(
      Float64Array.from(numbers, (x, item) => roundToEven(x * units[item]!)),
    );
  }

  /** Words of whole units; throws `guard-refused` where one exceeds its bound. */
  encodeUnits(whole: Float64Array): BigUint64Array {
    const excess = whole.filter((x, item) => !(Math.abs(x) <= this.#most[item]!));
    if (excess.length) {
      refuse(
        "guard-refused",
        `${excess.length} numbers exceed the bound that the parties agreed on.`,
      );
    }
    return BigUint64Array.from(whole, (x) => BigInt.asUintN(64, BigInt(x)));
  }

  /** Whether sums are as small as they must be. */
  fits(words: BigUint64Array): boolean {
    return words.every((word, item) => Math.abs(signedOf(word)) <= this.#most[item]!);
  }

  decode(words: BigUint64Array): Float64Array {
    return Float64Array.from(words, (word, item) => signedOf(word) / this.units[item]!);
  }
}

/** A word as a signed number, rounded to float64. */
export function signedOf(word: bigint): number {
  return Number(BigInt.asIntN(64, word));
}
