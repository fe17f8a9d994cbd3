/** Calls about ids, match keys and their points (spec, section 11). */

import { normalisedId } from "../src/alignment/identifiers.ts";
import { keyValues } from "../src/alignment/match-keys/key-values.ts";
import { readAlignment } from "../src/alignment/params.ts";
import type { Terms } from "../src/roster/terms.ts";
import { KeyedStream } from "../src/secrecy/chance.ts";
import { JointMask } from "../src/secrecy/joint-mask.ts";
import { drawScalar, inverseOf, maskId, maskPoint } from "../src/secrecy/ristretto.ts";
import { concat, digest, hex, lengthPrefixed, utf8 } from "../src/wire/bytes.ts";
import { refuse } from "../src/wire/problems.ts";
import { bytesIn, numberIn, textIn, type Call, type Input } from "./inputs.ts";

/** A stream whose next bytes are given. */
class GivenBytes extends KeyedStream {
  constructor(private readonly given: Uint8Array) {
    super(new Uint8Array(32));
  }

  override take(): Uint8Array {
    return this.given;
  }
}

function streamIn(given: Input): KeyedStream {
  return new GivenBytes(bytesIn(given, "scalar"));
}

function placeIn(given: Input): readonly [string, string, number] {
  return [
    textIn(given, "session"),
    textIn(given, "agreement"),
    numberIn(given, "row"),
  ] as const;
}

function idsBoundTo(given: Input): Uint8Array {
  return lengthPrefixed("coterie/intersection/1", ...placeIn(given));
}

function keysBoundTo(given: Input, purpose: string): Uint8Array {
  return lengthPrefixed("coterie/linkage/1", purpose, ...placeIn(given));
}

function point(
  problem: "guard-refused" | "protocol-failed",
  mask: () => Uint8Array,
): Uint8Array {
  try {
    return mask();
  } catch {
    return refuse(problem, "This is no point of the group.");
  }
}

export const LINKAGE: Readonly<Record<string, Call>> = {
  "normal-form": (given) => ({
    form: normalisedId(textIn(given, "id"), given["steps"] as string[]),
  }),
  "blind-id"(given) {
    const scalar = drawScalar(streamIn(given));
    return { point: hex(maskId(textIn(given, "id"), idsBoundTo(given), scalar)) };
  },
  "evaluate-id"(given) {
    const scalar = drawScalar(streamIn(given));
    const asked = bytesIn(given, "point");
    return { point: hex(point("guard-refused", () => maskPoint(asked, scalar))) };
  },
  "unblind-id"(given) {
    const inverse = inverseOf(drawScalar(streamIn(given)));
    const answer = bytesIn(given, "point");
    const value = point("protocol-failed", () => maskPoint(answer, inverse));
    const label = lengthPrefixed("coterie/token/1", idsBoundTo(given));
    const token = digest(concat([label, value, utf8(textIn(given, "id"))]));
    return { value: hex(value), token: hex(token) };
  },
  "match-values"(given) {
    const params = { alignment: { method: "ecdh", ...(given["alignment"] as object) } };
    const alignment = readAlignment({ protocol: { params } } as unknown as Terms);
    const values = keyValues(given["ids"] as string[], alignment);
    return { values: values.map((key) => key.map((value) => value ?? null)) };
  },
  "mask-value"(given) {
    const purpose = keysBoundTo(given, `key ${numberIn(given, "key")}`);
    const mask = new JointMask(streamIn(given));
    const [made] = mask.begin([textIn(given, "value")], purpose, streamIn(given));
    return { point: hex(made!) };
  },
  "mask-point"(given) {
    const mask = new JointMask(streamIn(given));
    const made = point("guard-refused", () => mask.goOn(bytesIn(given, "point")));
    const token = digest(concat([keysBoundTo(given, "token"), made]));
    return { point: hex(made), token: hex(token) };
  },
};
