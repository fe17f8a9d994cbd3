/** Messages against the tables that `GET /v1/protocols/{name}/messages` serves. */

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Arrays, NumberArray } from "./arrays.ts";
import type { Json } from "./canonical-json.ts";
import { codeOf, decode, encode, type Decoded } from "./codec.ts";
import type { JsonObject } from "./json-reading.ts";
import { Problem, refuse } from "./problems.ts";

export type Role = "task" | "contribution" | "envelope" | "result";

/** An array of a message: numpy's dtype, axes, least and largest item. */
export interface ArrayField {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (string | number)[];
  readonly bounds: readonly [number | null, number | null];
}

export interface MessageSpec {
  readonly stage: string;
  readonly kind: string;
  readonly version: number;
  readonly role: Role;
  readonly arrays: readonly ArrayField[];
  readonly values: object;
}

/** A message as roles see it: its kind, and all fields beside each other. */
export interface Message {
  readonly kind: string;
}

const CODES: Readonly<Record<string, string>> = {
  float64: "F64",
  float32: "F32",
  int64: "I64",
  int32: "I32",
  uint64: "U64",
  uint8: "U8",
};

const AJV = new Ajv2020({ strict: false, validateFormats: false });
const VALIDATORS = new WeakMap<object, ValidateFunction>();

/** The message in a received record; throws the problem that it has. */
export function readMessage(spec: MessageSpec, record: Decoded): Message {
  const { kind, version, values, ...more } = record.header;
  if (kind !== spec.kind || Object.keys(more).length) {
    refuse("malformed", `Expected a message of kind '${spec.kind}'.`);
  }
  if (version !== spec.version) {
    refuse(
      "version-mismatch",
      `This client supports '${spec.kind}' in v${spec.version} only.`,
    );
  }
  checkArrays(spec, record.arrays);
  checkValues(spec, values);
  return { ...(values as object), ...record.arrays, kind: spec.kind };
}

/** The bytes of a message's record, without the fields that are left out. */
export function writeMessage(spec: MessageSpec, message: Message): Uint8Array {
  const fields = message as unknown as Record<string, unknown>;
  const arrays: Record<string, NumberArray> = {};
  for (const { name } of spec.arrays) arrays[name] = fields[name] as NumberArray;
  const { properties = {} } = spec.values as { properties?: object };
  const values: Record<string, Json> = {};
  for (const name of Object.keys(properties)) values[name] = fields[name] as Json;
  checkArrays(spec, arrays);
  checkValues(spec, values);
  return encode({ kind: spec.kind, version: spec.version, values }, arrays);
}

export function decodeMessage(spec: MessageSpec, content: Uint8Array): Message {
  return readMessage(spec, decode(content));
}

function checkValues(spec: MessageSpec, values: unknown): void {
  let validate = VALIDATORS.get(spec.values);
  if (!validate) {
    validate = AJV.compile(spec.values);
    VALIDATORS.set(spec.values, validate);
  }
  if (validate(values as JsonObject)) return;
  const [finding] = validate.errors ?? [];
  const place = finding?.instancePath.slice(1).replaceAll("/", ".") ?? "";
  throw new Problem("malformed", `${spec.kind} '${place}': ${finding?.message}.`);
}

function checkArrays(spec: MessageSpec, arrays: Arrays): void {
  const expected = new Set(spec.arrays.map(({ name }) => name));
  if (Object.keys(arrays).some((name) => !expected.has(name))) {
    refuse("invalid-array", `${spec.kind}: an array is not declared.`);
  }
  const sizes = new Map<string, number>();
  for (const field of spec.arrays) {
    const array = arrays[field.name];
    const what = `${spec.kind} '${field.name}'`;
    if (!array) return refuse("invalid-array", `${what} is missing.`);
    if (codeOf(array) !== CODES[field.dtype]) {
      refuse("invalid-array", `${what} is not of ${field.dtype}.`);
    }
    checkShape(what, field, array, sizes);
    checkItems(what, field, array);
  }
}

function checkShape(
  what: string,
  field: ArrayField,
  array: NumberArray,
  sizes: Map<string, number>,
): void {
  if (array.shape.length !== field.shape.length) {
    refuse("invalid-array", `${what} has ${array.shape.length} axes.`);
  }
  field.shape.forEach((symbol, axis) => {
    const size = array.shape[axis]!;
    const known = typeof symbol === "number" ? symbol : sizes.get(symbol);
    if (known !== undefined && known !== size) {
      refuse("invalid-array", `${what} has ${size} for ${symbol}, expected ${known}.`);
    }
    if (typeof symbol === "string") sizes.set(symbol, size);
  });
}

function checkItems(what: string, field: ArrayField, array: NumberArray): void {
  const [low, high] = field.bounds;
  for (const item of array.data) {
    if (typeof item === "number" && !Number.isFinite(item)) {
      refuse("invalid-array", `${what} holds a number that is not finite.`);
    }
    if ((low !== null && item < low) || (high !== null && item > high)) {
      refuse("invalid-array", `${what} holds a number out of range.`);
    }
  }
}
