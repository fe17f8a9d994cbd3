/**
 * Named arrays and a JSON header, to bytes and back (decision 1): a safetensors file
 * with one metadata entry. The reader refuses gaps, overlaps and surplus bytes.
 */

import type { Arrays, NumberArray, Numbers } from "./arrays.ts";
import { concat, textOf, utf8 } from "./bytes.ts";
import { writeJson, type Json } from "./canonical-json.ts";
import { readObject, type JsonObject } from "./json-reading.ts";
import { refuse } from "./problems.ts";

export const MEDIA_TYPE = "application/vnd.coterie.arrays";
const MAX_HEADER_BYTES = 64 * 1024;
const METADATA = "__metadata__";
const OURS = "coterie";
const ARRAY_NAME = /^[a-z][a-z0-9_.-]{0,62}$/;

interface Dtype {
  readonly size: number;
  readonly type: new (buffer: ArrayBuffer) => Numbers;
}

const DTYPES: Readonly<Record<string, Dtype>> = {
  F64: { size: 8, type: Float64Array },
  F32: { size: 4, type: Float32Array },
  I64: { size: 8, type: BigInt64Array },
  I32: { size: 4, type: Int32Array },
  U64: { size: 8, type: BigUint64Array },
  U8: { size: 1, type: Uint8Array },
};

export interface Decoded {
  readonly header: JsonObject;
  readonly arrays: Arrays;
}

/** The dtype's code of an array, such as `F64`. */
export function codeOf(array: NumberArray): string {
  const found = Object.entries(DTYPES).find(
    ([, dtype]) => array.data instanceof dtype.type,
  );
  return found ? found[0] : refuse("invalid-array", "An array has no known dtype.");
}

/** The array of a known dtype's code, in little-endian bytes. */
export function arrayFrom(
  code: string,
  shape: readonly number[],
  bytes: Uint8Array,
): NumberArray {
  return { shape, data: dtypeNumbers(DTYPES[code]!, bytes) };
}

/** Header and arrays as one file: sorted names, arrays by item size, then by name. */
export function encode(header: Json, arrays: Arrays = {}): Uint8Array {
  const ordered = Object.entries(arrays).sort(
    ([a, x], [b, y]) =>
      y.data.BYTES_PER_ELEMENT - x.data.BYTES_PER_ELEMENT || (a < b ? -1 : 1),
  );
  const entries: Record<string, Json> = { [METADATA]: { [OURS]: writeJson(header) } };
  let end = 0;
  for (const [name, array] of ordered) {
    if (!ARRAY_NAME.test(name)) throw new RangeError(`${name} is not an array name`);
    const begin = end;
    end += array.data.byteLength;
    const dtype = codeOf(array);
    entries[name] = { dtype, shape: [...array.shape], data_offsets: [begin, end] };
  }
  const text = utf8(writeJson(entries));
  const padding = (8 - (text.length % 8)) % 8;
  if (text.length + padding > MAX_HEADER_BYTES) throw new RangeError("header too long");
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length + padding), true);
  const data = ordered.map(([, array]) => rawBytes(array.data));
  return concat([length, text, utf8(" ".repeat(padding)), ...data]);
}

/** Header and arrays of a file; throws `malformed` or `invalid-array`. */
export function decode(file: Uint8Array): Decoded {
  const [entries, data] = split(file);
  const { [METADATA]: metadata, ...described } = entries;
  const text = headerText(metadata);
  const spans = Object.entries(described).map(([name, entry]) => spanOf(name, entry));
  checkCover(spans, data.length);
  return {
    header: readObject(text),
    arrays: Object.fromEntries(spans.map((span) => [span.name, arrayOf(span, data)])),
  };
}

function rawBytes(data: Numbers): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function split(file: Uint8Array): [JsonObject, Uint8Array] {
  if (file.length < 8) refuse("malformed", "The body ends before its header's length.");
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = view.getBigUint64(0, true);
  if (length > MAX_HEADER_BYTES) refuse("malformed", "The header is too long.");
  const end = 8 + Number(length);
  if (file.length < end) refuse("malformed", "The body ends within its header.");
  return [readObject(textIn(file.subarray(8, end))), file.subarray(end)];
}

function textIn(header: Uint8Array): string {
  try {
    return textOf(header);
  } catch {
    return refuse("malformed", "The header is not UTF-8.");
  }
}

function headerText(metadata: unknown): string {
  const entries = metadata && typeof metadata === "object" ? metadata : {};
  const text: unknown = (entries as JsonObject)[OURS];
  if (typeof text !== "string" || Object.keys(entries).length !== 1) {
    refuse("malformed", `The metadata must have only the entry '${OURS}'.`);
  }
  return text;
}

interface Span {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function spanOf(name: string, entry: unknown): Span {
  if (!ARRAY_NAME.test(name)) refuse("invalid-array", "An array has a wrong name.");
  const fields = (entry && typeof entry === "object" ? entry : {}) as JsonObject;
  const names = Object.keys(fields).sort().join();
  if (names !== "data_offsets,dtype,shape") {
    refuse("malformed", `Array '${name}' needs dtype, shape and data_offsets.`);
  }
  const { dtype: code, shape, data_offsets: offsets } = fields;
  const dtype =
    typeof code === "string" && Object.hasOwn(DTYPES, code) ? DTYPES[code] : undefined;
  if (!dtype) return refuse("invalid-array", `Array '${name}' has an unknown dtype.`);
  if (!areSizes(shape) || !areSizes(offsets) || offsets.length !== 2) {
    return refuse(
      "malformed",
      `Array '${name}' has a shape or offsets that are not sizes.`,
    );
  }
  const [begin, end] = offsets as [number, number];
  const items = shape.reduce((product, size) => product * BigInt(size), 1n);
  if (items * BigInt(dtype.size) !== BigInt(end) - BigInt(begin)) {
    refuse("malformed", `Array '${name}' has a shape that does not fit its bytes.`);
  }
  return { name, dtype, shape, begin, end };
}

function areSizes(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length <= 8 &&
    value.every((size) => Number.isSafeInteger(size) && size >= 0)
  );
}

function checkCover(spans: readonly Span[], length: number): void {
  const ordered = [...spans].sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { begin, end } of ordered) {
    if (begin !== covered) refuse("malformed", "The arrays have gaps or overlaps.");
    covered = end;
  }
  if (covered !== length) refuse("malformed", "The arrays do not cover the data.");
}

function arrayOf({ dtype, shape, begin, end }: Span, data: Uint8Array): NumberArray {
  return { shape, data: dtypeNumbers(dtype, data.subarray(begin, end)) };
}

function dtypeNumbers({ type }: Dtype, bytes: Uint8Array): Numbers {
  // of a copy, which is aligned wherever the file lies
  return new type(bytes.slice().buffer as ArrayBuffer);
}
