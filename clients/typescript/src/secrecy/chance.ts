/** Keys and the streams that they stand for (spec, section 2). */

import { createCipheriv, hkdfSync, type Cipher } from "node:crypto";
import { normalQuantile } from "../numerics/normal-quantile.ts";
import { lengthPrefixed, type Part } from "../wire/bytes.ts";

const KEY_BYTES = 32;
const NO_SALT = new Uint8Array();
const NO_NONCE = new Uint8Array(16);

/** 32 bytes of a secret for one labelled use: HKDF-SHA256. */
export function derive(
  secret: Uint8Array,
  info: readonly Part[],
  salt: Uint8Array = NO_SALT,
): Uint8Array {
  const label = lengthPrefixed(...info);
  return new Uint8Array(hkdfSync("sha256", secret, salt, label, KEY_BYTES));
}

/** A source of words of 64 bits, one after the other. */
export interface WordSource {
  words(size: number): BigUint64Array;
}

/** Random numbers that only holders of a key can draw; a key serves one purpose. */
export class KeyedStream implements WordSource {
  readonly #cipher: Cipher;

  constructor(key: Uint8Array) {
    this.#cipher = createCipheriv("chacha20", key, NO_NONCE);
  }

  take(size: number): Uint8Array {
    return new Uint8Array(this.#cipher.update(new Uint8Array(size)));
  }

  words(size: number): BigUint64Array {
    return new BigUint64Array(this.take(8 * size).buffer);
  }

  /** Uniform numbers of the open interval (0, 1), 52 bits each. */
  uniform(size: number): Float64Array {
    return Float64Array.from(
      this.words(size),
      (word) => (Number(word >> 12n) + 0.5) * 2 ** -52,
    );
  }

  /** Standard normal numbers. */
  normal(size: number): Float64Array {
    return this.uniform(size).map(normalQuantile);
  }

  /** A permutation of 0 … size - 1: the stable order of words. */
  permutation(size: number): number[] {
    const words = this.words(size);
    const compare = (a: number, b: number) =>
      words[a]! < words[b]! ? -1 : Number(words[a]! > words[b]!);
    return Array.from(words.keys()).sort(compare);
  }
}
