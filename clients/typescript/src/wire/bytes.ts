/** Bytes, texts and numbers, and how they are joined (spec, section 1). */

import { sha256 } from "@noble/hashes/sha2.js";

export type Part = string | number | bigint | Uint8Array;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The text in UTF-8 bytes; throws TypeError if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string {
  return UTF8.decode(bytes);
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** The bytes of hex digits; throws RangeError unless all are lower-case hex. */
export function unhex(digits: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/.test(digits))
    throw new RangeError("These are not hex digits.");
  return new Uint8Array(Buffer.from(digits, "hex"));
}

/** Parts one after the other; no arguments, of which there may be too many. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** SHA-256 of bytes, or of a text in UTF-8: 32 bytes. */
export function digest(content: Uint8Array | string): Uint8Array {
  return sha256(typeof content === "string" ? utf8(content) : content);
}

export function hexDigest(content: Uint8Array | string): string {
  return hex(digest(content));
}

/** `lp(a, b, …)`: each part behind its length in 8 bytes, big-endian. */
export function lengthPrefixed(...parts: readonly Part[]): Uint8Array {
  return concat(
    parts.flatMap((part) => {
      const bytes = bytesOf(part);
      return [bigEndian(bytes.length), bytes];
    }),
  );
}

function bytesOf(part: Part): Uint8Array {
  if (typeof part === "string") return utf8(part);
  return part instanceof Uint8Array ? part : bigEndian(part);
}

function bigEndian(value: number | bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}
