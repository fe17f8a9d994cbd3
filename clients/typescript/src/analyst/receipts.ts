/** Receipts, by which the analyst confirms what it stored. */

import { isSigned } from "../secrecy/keys.ts";
import { hexDigest, lengthPrefixed, unhex } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";

export interface Receipt {
  readonly session: string;
  readonly slot: string;
  readonly round: number;
  readonly attempt: number;
  readonly digest: string;
  readonly size: number;
  readonly sequence: number;
  readonly entry: string;
  readonly signature: string;
}

const SIGNED_FIELDS = [
  ...(["session", "slot", "round", "attempt"] as const),
  ...(["digest", "size", "sequence", "entry"] as const),
];

/** The header in which a receipt lies where the body is the next task. */
export const RECEIPT_HEADER = "coterie-receipt";

/** The receipt in a header (a byte sequence of RFC 8941). */
export function receiptInHeader(header: string): Receipt {
  const text = Buffer.from(header.slice(1, -1), "base64").toString("utf8");
  return JSON.parse(text) as Receipt;
}

/** Refuses a receipt of other bytes, or one that the analyst did not sign. */
export function checkReceipt(
  receipt: Receipt,
  contribution: Uint8Array,
  analyst: string | null | undefined,
): void {
  if (receipt.digest !== hexDigest(contribution)) {
    refuse("equivocation", "The receipt is for other bytes.");
  }
  if (!analyst) return;
  const texts = SIGNED_FIELDS.map((name) => String(receipt[name]));
  const statement = lengthPrefixed("coterie/receipt/1", ...texts);
  if (!isSigned(analyst, statement, unhex(receipt.signature))) {
    refuse("key-not-authentic", "The analyst of the terms did not sign the receipt.");
  }
}
