/** Calls of the vectors that need no session (spec, section 14). */

import { readInvitation } from "../src/roster/invitation.ts";
import {
  proveJoin,
  readAgreement,
  signedLine,
  type Line,
  type Member,
} from "../src/roster/roster.ts";
import { readTerms } from "../src/roster/terms.ts";
import { derive } from "../src/secrecy/chance.ts";
import { openEnvelope, type Binding } from "../src/secrecy/envelopes.ts";
import {
  exchange,
  partyKeys,
  safetyNumber,
  sign,
  type PublicKeys,
} from "../src/secrecy/keys.ts";
import { checkSignatures, statement } from "../src/session/signatures.ts";
import { followTranscript } from "../src/session/transcript.ts";
import { hex, hexDigest, lengthPrefixed, unhex, utf8 } from "../src/wire/bytes.ts";
import { canonicalJson, type Json } from "../src/wire/canonical-json.ts";
import { decode, encode } from "../src/wire/codec.ts";
import { readPacket } from "../src/wire/packets.ts";
import { ofForm, toForm, type Form } from "./array-form.ts";
import { CHANCE } from "./chance-calls.ts";
import { bytesIn, numberIn, partsIn, textIn, type Call } from "./inputs.ts";
import { LINKAGE } from "./linkage-calls.ts";
import { SESSIONS } from "./session-calls.ts";
import { SUMS } from "./sum-calls.ts";

const NO_KEYS: PublicKeys = { x25519: "", ed25519: "" };

const ROSTER: Readonly<Record<string, Call>> = {
  canonical: ({ value }) => ({ text: canonicalJson(value as Json) }),
  line(given) {
    const line = given["line"] as Line;
    const place = { session: textIn(given, "session"), digest: textIn(given, "terms") };
    const secret = bytesIn(given, "session_secret");
    const { written, mark, signature } = signedLine(
      ...([place, secret, line, bytesIn(given, "private")] as const),
    );
    return { written: hex(written), mark, signature };
  },
  "join-proof"(given) {
    const place = { session: textIn(given, "session") };
    const member = given["member"] as Member;
    const [code, joins] = [textIn(given, "code"), numberIn(given, "joins")];
    const signing = bytesIn(given, "ed25519_private");
    return { proof: proveJoin(place, member, code, joins, signing) };
  },
  invitation(given) {
    const { secret, ...said } = readInvitation(textIn(given, "text"));
    return { ...said, session_secret: hex(secret) };
  },
  agreement(given) {
    const terms = readTerms(textIn(given, "terms"));
    const own = (given["own"] as Member | null) ?? undefined;
    const bytes = utf8(textIn(given, "agreement"));
    const secret = bytesIn(given, "session_secret");
    return { digest: readAgreement(bytes, terms, secret, own).digest };
  },
  "safety-number": (given) => ({
    digits: safetyNumber(utf8(textIn(given, "agreement"))),
  }),
};

const KEYS: Readonly<Record<string, Call>> = {
  lp: ({ parts }) => ({ bytes: hex(lengthPrefixed(...partsIn(parts))) }),
  derive: (given) => ({
    key: hex(
      derive(bytesIn(given, "secret"), partsIn(given["info"]), bytesIn(given, "salt")),
    ),
  }),
  exchange: (given) => ({
    shared: hex(exchange(bytesIn(given, "private"), textIn(given, "public"))),
  }),
  "party-keys"(given) {
    const [session, slot] = [textIn(given, "session"), textIn(given, "slot")];
    const keys = partyKeys(bytesIn(given, "entropy"), session, slot);
    return {
      x25519_private: hex(keys.opening),
      ed25519_private: hex(keys.signing),
      ...keys.public,
    };
  },
  async "open-envelope"(given) {
    const own = {
      opening: bytesIn(given, "private"),
      signing: new Uint8Array(),
      public: NO_KEYS,
    };
    const peer = { ...NO_KEYS, ed25519: textIn(given, "sender_ed25519") };
    const bound = given as unknown as Binding;
    const opened = await openEnvelope(bytesIn(given, "envelope"), bound, own, peer);
    return { content: hex(opened) };
  },
};

const RECORDS: Readonly<Record<string, Call>> = {
  "write-record"(given) {
    const { header, arrays } = ofForm(given as unknown as Form);
    return { bytes: base64(encode(header as Json, arrays)) };
  },
  "read-record": (given) => toForm(decode(fromBase64(given))),
  "read-packet"(given) {
    const packet = readPacket(fromBase64(given));
    const { record } = packet;
    return {
      address: packet.address,
      expects: packet.expects,
      envelopes: packet.envelopes.map(({ label }) => label),
      record: record.header,
      arrays: toForm({ header: {}, arrays: record.arrays }).arrays,
      own: packet.own,
      sealed: packet.envelopes.map(({ sealed }) => hex(sealed)),
      content_digest: packet.contentDigest,
      lines: packet.history,
      signatures: packet.signatures.map(hex),
    };
  },
};

const TRANSCRIPT: Readonly<Record<string, Call>> = {
  follow(given) {
    const lines = given["lines"] as string[];
    const known = given["known"] as { number: number; digest: string };
    const found = followTranscript(lines, textIn(given, "agreement"), known);
    const attempts = found.map(({ leftOut, transcript: _, ...said }) => ({
      ...said,
      left_out: leftOut,
    }));
    return { attempts, transcript: hexDigest(lines.at(-1)!) };
  },
  "sign-transcript"(given) {
    const said = statement(textIn(given, "stage"), textIn(given, "transcript"));
    return { signature: hex(sign(bytesIn(given, "private"), said)) };
  },
  "check-signatures"(given) {
    checkSignatures(
      given["keys"] as Record<string, string>,
      ...([textIn(given, "stage"), textIn(given, "transcript")] as const),
      (given["signatures"] as string[]).map(unhex),
      numberIn(given, "least"),
    );
    return {};
  },
};

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function fromBase64(given: Readonly<Record<string, unknown>>): Uint8Array {
  return new Uint8Array(Buffer.from(textIn(given, "bytes"), "base64"));
}

export const CALLS: Readonly<Record<string, Call>> = {
  ...CHANCE,
  ...KEYS,
  ...ROSTER,
  ...RECORDS,
  ...TRANSCRIPT,
  ...SUMS,
  ...LINKAGE,
  ...SESSIONS,
};
