/** Packets: a record under way, with its address and the envelopes beside it. */

import { bytes, type Arrays, type NumberArray } from "./arrays.ts";
import { hexDigest, textOf } from "./bytes.ts";
import type { Json } from "./canonical-json.ts";
import { decode, encode, type Decoded } from "./codec.ts";
import type { JsonObject } from "./json-reading.ts";
import { refuse } from "./problems.ts";

export interface RoundRef {
  readonly stage: string;
  readonly round: number;
  readonly attempt: number;
}

export interface Address extends RoundRef {
  readonly session: string;
  readonly agreement: string;
  readonly slot: string;
}

/** On an envelope: the other side, the kind, and when it was sealed. */
export interface EnvelopeLabel extends RoundRef {
  readonly peer: string;
  readonly kind: string;
}

export interface Envelope {
  readonly label: EnvelopeLabel;
  readonly sealed: Uint8Array;
}

/** `content`: the record's bytes as they came; `own`: names of the own fields. */
export interface Packet {
  readonly address: Address;
  readonly expects: unknown;
  readonly record: Decoded;
  readonly contentDigest: string;
  readonly own: readonly string[];
  readonly envelopes: readonly Envelope[];
  readonly history: readonly string[];
  readonly signatures: readonly Uint8Array[];
}

const SIGNATURE_BYTES = 64;

/** A contribution's bytes. */
export function writePacket(
  address: Address,
  content: Uint8Array,
  envelopes: readonly Envelope[],
): Uint8Array {
  const arrays: Record<string, NumberArray> = { content: bytes(content) };
  envelopes.forEach(({ sealed }, index) => {
    arrays[`envelope.${index}`] = bytes(sealed);
  });
  const labels = envelopes.map(({ label }) => ({ ...label }));
  const header = { address: { ...address }, envelopes: labels, expects: null };
  return encode(header satisfies Json, arrays);
}

/** The packet in a task or a result; throws `malformed` or `invalid-array`. */
export function readPacket(body: Uint8Array): Packet {
  const { header, arrays } = decode(body);
  const { address, envelopes = [], expects = null, ...more } = header;
  if (Object.keys(more).length) refuse("malformed", "A packet has no such field.");
  const beside = new Map(Object.entries(arrays));
  const content = popBytes(beside, "content");
  const own = popBytes(beside, "own");
  const [record, names] = putBackOwn(decode(content), own);
  const packet = {
    address: readAddress(address),
    expects,
    record,
    contentDigest: hexDigest(content),
    own: names,
    history: readLines(popBytes(beside, "transcript.lines")),
    signatures: popSignatures(beside),
    envelopes: popEnvelopes(beside, envelopes),
  };
  if (beside.size) refuse("malformed", "The envelopes do not match their labels.");
  return packet;
}

function popBytes(arrays: Map<string, NumberArray>, name: string): Uint8Array {
  const found = arrays.get(name);
  arrays.delete(name);
  if (!found) return new Uint8Array();
  if (!(found.data instanceof Uint8Array) || found.shape.length !== 1) {
    refuse("malformed", `The array '${name}' must hold bytes.`);
  }
  return found.data;
}

/** The record with its own fields; throws `malformed` if one appears twice. */
function putBackOwn(record: Decoded, own: Uint8Array): [Decoded, readonly string[]] {
  if (!own.length) return [record, []];
  const more = decode(own);
  const values = (record.header["values"] ?? {}) as JsonObject;
  const known = [...Object.keys(values), ...Object.keys(record.arrays)];
  const names = [...Object.keys(more.header), ...Object.keys(more.arrays)];
  if (new Set([...known, ...names]).size < known.length + names.length) {
    refuse("malformed", "A field appears twice in one packet.");
  }
  const header = { ...record.header, values: { ...values, ...more.header } };
  const arrays: Arrays = { ...record.arrays, ...more.arrays };
  return [{ header, arrays }, names.sort()];
}

function readLines(lines: Uint8Array): readonly string[] {
  try {
    return lines.length ? textOf(lines).split("\n") : [];
  } catch {
    return refuse("malformed", "A line of the transcript is not UTF-8.");
  }
}

function popSignatures(arrays: Map<string, NumberArray>): readonly Uint8Array[] {
  const found = arrays.get("transcript.signatures");
  arrays.delete("transcript.signatures");
  if (!found) return [];
  const { data, shape } = found;
  if (
    !(data instanceof Uint8Array) ||
    shape.length !== 2 ||
    shape[1] !== SIGNATURE_BYTES
  ) {
    return refuse("malformed", `A signature has ${SIGNATURE_BYTES} bytes.`);
  }
  return Array.from({ length: shape[0]! }, (_, slot) =>
    data.subarray(slot * SIGNATURE_BYTES, (slot + 1) * SIGNATURE_BYTES),
  );
}

function popEnvelopes(
  arrays: Map<string, NumberArray>,
  labels: unknown,
): readonly Envelope[] {
  if (!Array.isArray(labels)) return refuse("malformed", "A packet has envelopes.");
  return labels.map((label: unknown, index) => {
    const name = `envelope.${index}`;
    if (!arrays.has(name))
      refuse("malformed", "A packet lists an envelope that it does not hold.");
    return { label: readLabel(label), sealed: popBytes(arrays, name) };
  });
}

function readLabel(value: unknown): EnvelopeLabel {
  const fields = fieldsOf(value, ["attempt", "kind", "peer", "round", "stage"]);
  return {
    ...readRound(fields),
    peer: readText(fields, "peer"),
    kind: readText(fields, "kind"),
  };
}

function readAddress(value: unknown): Address {
  const names = ["agreement", "attempt", "round", "session", "slot", "stage"];
  const fields = fieldsOf(value, names);
  return {
    ...readRound(fields),
    session: readText(fields, "session"),
    agreement: readText(fields, "agreement"),
    slot: readText(fields, "slot"),
  };
}

export function readRound(fields: JsonObject): RoundRef {
  return {
    stage: readText(fields, "stage"),
    round: readCount(fields, "round"),
    attempt: readCount(fields, "attempt"),
  };
}

/** The fields of an object that has these names and no other. */
export function fieldsOf(value: unknown, names: readonly string[]): JsonObject {
  const fields = (value && typeof value === "object" ? value : {}) as JsonObject;
  if (Object.keys(fields).sort().join() !== names.join()) {
    refuse("malformed", `Expected an object of ${names.join(", ")}.`);
  }
  return fields;
}

export function readText(fields: JsonObject, name: string): string {
  const value = fields[name];
  return typeof value === "string"
    ? value
    : refuse("malformed", `${name} must be a string.`);
}

export function readCount(fields: JsonObject, name: string): number {
  const value = fields[name];
  return Number.isSafeInteger(value) && (value as number) >= 1
    ? (value as number)
    : refuse("malformed", `${name} must be an integer of at least 1.`);
}
