/** Keys and the streams that they stand for (spec, section 2). */

import { chacha20 } from "@noble/ciphers/chacha.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { lengthPrefixed, type Part } from "../wire/bytes.ts";

const BLOCK_BYTES = 64;
const NO_NONCE = new Uint8Array(12);

/** 32 bytes of a secret for one labelled use: HKDF-SHA256. */
export function derive(
  secret: Uint8Array,
  info: readonly Part[],
  salt?: Uint8Array,
): Uint8Array {
  return hkdf(sha256, secret, salt, lengthPrefixed(...info), 32);
}

/** Random numbers that only holders of a key can draw; a key serves one purpose. */
export class KeyedStream {
  readonly #key: Uint8Array;
  #taken = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  take(size: number): Uint8Array {
    const block = Math.floor(this.#taken / BLOCK_BYTES);
    const skipped = this.#taken % BLOCK_BYTES;
    const zeros = new Uint8Array(skipped + size);
    this.#taken += size;
    return chacha20(this.#key, NO_NONCE, zeros, undefined, block).slice(skipped);
  }

  /** Words of 64 bits. */
  words(size: number): BigUint64Array {
    return new BigUint64Array(this.take(8 * size).buffer as ArrayBuffer);
  }
}
