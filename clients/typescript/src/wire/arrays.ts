/** Arrays of numbers with a shape, row by row. */

export type Numbers =
  | Float64Array
  | Float32Array
  | BigInt64Array
  | Int32Array
  | BigUint64Array
  | Uint8Array;

export interface NumberArray<T extends Numbers = Numbers> {
  readonly shape: readonly number[];
  readonly data: T;
}

export type Floats = NumberArray<Float64Array>;
export type Ints = NumberArray<BigInt64Array>;
export type Words = NumberArray<BigUint64Array>;
export type Bytes = NumberArray<Uint8Array>;
export type Arrays = Readonly<Record<string, NumberArray>>;

/** Whole numbers of a JavaScript program as 64 bits. */
export function ints(
  data: readonly number[],
  shape: readonly number[] = [data.length],
): Ints {
  return { shape, data: BigInt64Array.from(data, BigInt) };
}

export function floats(
  data: ArrayLike<number>,
  shape: readonly number[] = [data.length],
): Floats {
  return { shape, data: Float64Array.from(data) };
}

export function words(data: BigUint64Array): Words {
  return { shape: [data.length], data };
}

export function bytes(data: Uint8Array): Bytes {
  return { shape: [data.length], data };
}

/** The numbers of 64 bits as those of a program, where all are exact there. */
export function numbers(array: Ints): number[] {
  return Array.from(array.data, (each) => {
    const number = Number(each);
    if (!Number.isSafeInteger(number)) throw new RangeError("A number is too large.");
    return number;
  });
}
