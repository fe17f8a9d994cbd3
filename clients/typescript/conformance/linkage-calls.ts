/** Calls about ids, match keys and their points (spec, section 11). */

import { comparedValues } from "../src/alignment/arrival.ts";
import { normalisedId } from "../src/alignment/identifiers.ts";
import { readAlignment } from "../src/alignment/params.ts";
import type { Terms } from "../src/roster/terms.ts";
import { KeyedStream } from "../src/secrecy/chance.ts";
import { JointMask } from "../src/secrecy/joint-mask.ts";
import { concat, digest, hex, lengthPrefixed } from "../src/wire/bytes.ts";
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

function keysBoundTo(given: Input, purpose: string): Uint8Array {
  return lengthPrefixed("coterie/linkage/1", purpose, ...placeIn(given));
}

function goOn(mask: JointMask, point: Uint8Array): Uint8Array {
  try {
    return mask.goOn(point);
  } catch {
    return refuse("guard-refused", "This is not a point of the group.");
  }
}

export const LINKAGE: Readonly<Record<string, Call>> = {
  "normal-form": (given) => ({
    form: normalisedId(textIn(given, "id"), given["steps"] as string[]),
  }),
  "match-values"(given) {
    const params = { alignment: { method: "ecdh", ...(given["alignment"] as object) } };
    const alignment = readAlignment({ protocol: { params } } as unknown as Terms);
    const values = comparedValues(given["ids"] as string[], alignment);
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
    const made = goOn(mask, bytesIn(given, "point"));
    const token = digest(concat([keysBoundTo(given, "token"), made]));
    return { point: hex(made), token: hex(token) };
  },
};
