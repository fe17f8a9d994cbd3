/** Keys that all members of a group derive alike (spec, section 9). */

import { createHmac } from "node:crypto";
import { lengthPrefixed, unhex } from "../wire/bytes.ts";
import { derive } from "./chance.ts";

/** `agreement`: the digest (hex) of the agreement. */
export function groupKey(
  secret: Uint8Array,
  agreement: string,
  purpose: string,
): Uint8Array {
  return derive(secret, ["coterie/group/1", purpose], unhex(agreement));
}

/** HMAC-SHA256 (hex) over texts, each behind its length. */
export function groupDigest(key: Uint8Array, names: Iterable<string>): string {
  const digest = createHmac("sha256", key);
  for (const name of names) digest.update(lengthPrefixed(name));
  return digest.digest("hex");
}
