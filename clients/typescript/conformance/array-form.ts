/** Header and arrays as JSON (spec/conformance.md). */

import type { NumberArray, Numbers } from "../src/wire/arrays.ts";
import { arrayFrom, codeOf, type Decoded } from "../src/wire/codec.ts";

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: string | readonly (number | bigint)[];
}

export interface Form {
  readonly header: Decoded["header"];
  readonly arrays: Readonly<Record<string, Entry>>;
}

const AS_BYTES = new Set(["U8", "U64"]);

export function toForm({ header, arrays }: Decoded): Form {
  const entries = Object.entries(arrays).map(([name, array]) => [name, toEntry(array)]);
  return { header, arrays: Object.fromEntries(entries) as Form["arrays"] };
}

export function ofForm({ header, arrays }: Form): Decoded {
  const read = Object.entries(arrays).map(([name, entry]) => [name, ofEntry(entry)]);
  return { header, arrays: Object.fromEntries(read) as Decoded["arrays"] };
}

function toEntry(array: NumberArray): Entry {
  const { shape, data } = array;
  const dtype = codeOf(array);
  return AS_BYTES.has(dtype)
    ? { dtype, shape, data: Buffer.from(bytesOf(data)).toString("base64") }
    : { dtype, shape, data: [...data] };
}

function ofEntry({ dtype, shape, data }: Entry): NumberArray {
  const bytes =
    typeof data === "string"
      ? Buffer.from(data, "base64")
      : bytesOf(ofList(dtype, data));
  return arrayFrom(dtype, shape, new Uint8Array(bytes));
}

function ofList(dtype: string, data: readonly (number | bigint)[]): Numbers {
  if (dtype === "I64") return BigInt64Array.from(data, BigInt);
  const numbers = data.map(Number);
  if (dtype === "F64") return Float64Array.from(numbers);
  return dtype === "F32" ? Float32Array.from(numbers) : Int32Array.from(numbers);
}

function bytesOf(data: Numbers): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
