/** Lines of the roster: made, proved and checked (spec, section 5). */

import { timingSafeEqual } from "node:crypto";
import { hmacHex, isSigned, sign, type PublicKeys } from "../secrecy/keys.ts";
import { hex, hexDigest, lengthPrefixed, textOf, unhex, utf8 } from "../wire/bytes.ts";
import { canonicalJson, type Json } from "../wire/canonical-json.ts";
import { readObject } from "../wire/json-reading.ts";
import { refuse } from "../wire/problems.ts";
import { slotNames, type Terms } from "./terms.ts";

export interface Line {
  readonly slot: string;
  readonly n_rows: number;
  readonly n_columns: number;
  readonly keys: PublicKeys;
  readonly institution: string;
  readonly identity: string;
}

export interface Member extends Line {
  readonly mark: string;
  readonly signature: string;
}

/** The roster of a session, and the digest of the agreement's exact bytes. */
export interface Agreement {
  readonly terms: Terms;
  readonly digest: string;
  readonly roster: readonly Member[];
}

const LINE_FIELDS = ["identity", "institution", "keys", "n_columns", "n_rows", "slot"];
const MEMBER_FIELDS = [...LINE_FIELDS, "mark", "signature"].sort().join();

/** Lines of a roster are bound to a session and to the digest of its terms. */
export type LinePlace = Pick<Terms, "session" | "digest">;

/** A party's line, marked with the session secret and signed by its institution. */
export function enrol(
  place: LinePlace,
  secret: Uint8Array,
  line: Line,
  identity: Uint8Array,
): Member {
  const { mark, signature } = signedLine(place, secret, line, identity);
  return { ...line, mark, signature };
}

/** The written line, its mark and its signature. */
export function signedLine(
  place: LinePlace,
  secret: Uint8Array,
  line: Line,
  identity: Uint8Array,
): { written: Uint8Array; mark: string; signature: string } {
  const written = writtenLine(place, line);
  const signature = hex(sign(identity, written));
  return { written, mark: markOf(secret, written), signature };
}

/** The proof of a join (hex): it covers how often the slot was joined before. */
export function proveJoin(
  { session }: Pick<Terms, "session">,
  member: Member,
  code: string,
  joins: number,
  signing: Uint8Array,
): string {
  const written = utf8(canonicalJson(asJson(member)));
  const statement = lengthPrefixed(
    ...["coterie/join/3", session, written, hexDigest(code), joins],
  );
  return hex(sign(signing, statement));
}

/**
 * The agreement in the bytes that the analyst shows, checked line by line.
 *
 * Throws `agreement-mismatch` for other terms than were accepted or another own line,
 * and `key-not-authentic` for another's mark, signature or institution. Without an own
 * line it is checked as a coordinator does.
 */
export function readAgreement(
  bytes: Uint8Array,
  terms: Terms,
  secret: Uint8Array,
  own: Member | undefined,
): Agreement {
  const fields = readObject(textOf(bytes));
  if (fields["terms"] !== terms.text) {
    refuse("agreement-mismatch", "The terms changed after this party accepted them.");
  }
  const roster = readRoster(fields["roster"]);
  if (roster.map(({ slot }) => slot).join() !== slotNames(terms).join()) {
    refuse("malformed", "The roster does not list each slot of the layout once.");
  }
  if (own) checkOwn(roster, own);
  for (const member of roster) checkLine(terms, secret, member);
  return { terms, digest: hexDigest(bytes), roster };
}

function checkOwn(roster: readonly Member[], own: Member): void {
  const shown = roster.find(({ slot }) => slot === own.slot);
  if (!shown || canonicalJson(asJson(shown)) !== canonicalJson(asJson(own))) {
    refuse(
      "agreement-mismatch",
      `The roster has a changed line for slot '${own.slot}'.`,
    );
  }
}

function readRoster(value: unknown): readonly Member[] {
  const lines = Array.isArray(value) ? (value as unknown[]) : [];
  for (const line of lines) {
    const names = line && typeof line === "object" ? Object.keys(line) : [];
    if (names.sort().join() !== MEMBER_FIELDS) {
      refuse("malformed", "A line of the roster has missing or unknown fields.");
    }
  }
  return lines as Member[];
}

function checkLine(terms: Terms, secret: Uint8Array, member: Member): void {
  const { mark, signature, ...line } = member;
  const written = writtenLine(terms, line);
  if (!isSame(markOf(secret, written), mark)) {
    refuse(
      "key-not-authentic",
      `The line of slot '${line.slot}' has a mark that was not made with the session secret.`,
    );
  }
  const expected = terms.identities?.slots?.[line.slot] ?? line.identity;
  if (line.identity !== expected) {
    refuse(
      "key-not-authentic",
      `Slot '${line.slot}' is taken by an institution that the terms do not expect.`,
    );
  }
  if (!isSigned(line.identity, written, unhex(signature))) {
    refuse(
      "key-not-authentic",
      `The line of slot '${line.slot}' is not what its institution signed.`,
    );
  }
}

function writtenLine({ session, digest }: LinePlace, line: Line): Uint8Array {
  const written = utf8(canonicalJson(asJson(line)));
  return lengthPrefixed("coterie/line/1", session, digest, written);
}

function markOf(secret: Uint8Array, written: Uint8Array): string {
  return hmacHex(secret, lengthPrefixed("coterie/mark/2", written));
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(utf8(a), utf8(b));
}

function asJson(line: Line): Json {
  return line as unknown as Json;
}
