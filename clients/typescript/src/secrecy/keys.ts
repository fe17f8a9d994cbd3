/** Keys of a party in one session, marks, statements, and the safety number. */

import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { hex, lengthPrefixed, unhex } from "../wire/bytes.ts";
import { Problem } from "../wire/problems.ts";
import { derive, KeyedStream } from "./chance.ts";

/** 32 bytes each, in hex. */
export interface PublicKeys {
  readonly x25519: string;
  readonly ed25519: string;
}

export interface PartyKeys {
  readonly opening: Uint8Array;
  readonly signing: Uint8Array;
  readonly public: PublicKeys;
}

/** The keys that 32 bytes of entropy stand for, in a session and slot. */
export function partyKeys(
  entropy: Uint8Array,
  session: string,
  slot: string,
): PartyKeys {
  const stream = new KeyedStream(derive(entropy, ["coterie/keys/1", session, slot]));
  const [opening, signing] = [stream.take(32), stream.take(32)];
  return {
    opening,
    signing,
    public: {
      x25519: hex(x25519.getPublicKey(opening)),
      ed25519: verifyingKey(signing),
    },
  };
}

/** The 32 bytes that two parties share; refuses keys of small order. */
export function exchange(own: Uint8Array, peer: string): Uint8Array {
  try {
    return x25519.getSharedSecret(own, unhex(peer));
  } catch {
    throw new Problem("key-not-authentic", "A public key is of small order.");
  }
}

/** The public half (hex) of a signing key. */
export function verifyingKey(signing: Uint8Array): string {
  return hex(ed25519.getPublicKey(signing));
}

export function sign(key: Uint8Array, statement: Uint8Array): Uint8Array {
  return ed25519.sign(statement, key);
}

/** Whether the holder of a key (hex) signed these bytes. */
export function isSigned(
  key: string,
  statement: Uint8Array,
  signature: Uint8Array,
): boolean {
  try {
    return ed25519.verify(signature, statement, unhex(key), { zip215: false });
  } catch {
    return false;
  }
}

/** HMAC-SHA256, in hex. */
export function hmacHex(key: Uint8Array, content: Uint8Array): string {
  return hex(hmac(sha256, key, content));
}

/** 60 digits over an agreement's bytes, which its members compare by telephone. */
export function safetyNumber(agreement: Uint8Array): string {
  const digest = sha512(lengthPrefixed("coterie/safety/1", agreement));
  const groups = Array.from({ length: 12 }, (_, group) => {
    const five = digest.subarray(5 * group, 5 * group + 5);
    const number = five.reduce((sum, byte) => sum * 256 + byte, 0);
    return String(number % 100_000).padStart(5, "0");
  });
  return groups.join(" ");
}
