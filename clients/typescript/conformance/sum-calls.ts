/** Calls about group secrets and sums (spec, sections 9 to 11). */

import { KeyedStream } from "../src/secrecy/chance.ts";
import { tagOf } from "../src/secrecy/field.ts";
import { finest, FixedPoint, signedOf } from "../src/secrecy/fixed-point.ts";
import { groupDigest, groupKey } from "../src/secrecy/group-keys.ts";
import { pairStream } from "../src/secrecy/own-streams.ts";
import {
  labelOf,
  readTotal,
  share,
  type Sum,
  type SumMember,
} from "../src/secrecy/sums.ts";
import {
  bytesIn,
  numberIn,
  textIn,
  textsOf,
  wordsIn,
  type Call,
  type Input,
} from "./inputs.ts";

interface NamedKey {
  readonly slot: string;
  readonly x25519: string;
}

function groupKeyIn(given: Input, purpose: string): Uint8Array {
  return groupKey(bytesIn(given, "secret"), textIn(given, "agreement"), purpose);
}

function sumIn(given: Input): Sum {
  const members = (given["members"] as NamedKey[]).map(({ slot }) => slot);
  const [name, transcript] = [textIn(given, "name"), textIn(given, "transcript")];
  return { members, name, transcript };
}

function memberIn(given: Input): SumMember {
  const keys = given["members"] as NamedKey[];
  const slots = keys.map(({ slot }) => slot);
  const slot = textIn(given, "slot");
  return {
    slot,
    slots,
    groupStream: (purpose) => new KeyedStream(groupKeyIn(given, purpose)),
    pairStream(peer, ...labels) {
      const { x25519 } = keys.find((key) => key.slot === peer)!;
      const pair = slots.filter((each) => each === peer || each === slot);
      const own = bytesIn(given, "private");
      return pairStream(own, x25519, textIn(given, "transcript"), pair, labels);
    },
  };
}

export const SUMS: Readonly<Record<string, Call>> = {
  "alignment-digest"(given) {
    const key = groupKeyIn(given, `alignment/${textIn(given, "scope")}`);
    return { digest: groupDigest(key, given["names"] as string[]) };
  },
  "row-order"(given) {
    const stream = new KeyedStream(groupKeyIn(given, "row-order"));
    return { order: stream.permutation(numberIn(given, "size")) };
  },
  tag(given) {
    const stream = new KeyedStream(bytesIn(given, "key"));
    return { tag: String(tagOf(wordsIn(given, "words"), stream)) };
  },
  "fixed-point"(given) {
    const point = new FixedPoint(
      given["bounds"] as number[],
      finest(numberIn(given, "bits")),
    );
    const words = point.encode(given["numbers"] as number[]);
    return { units: [...point.units], words: textsOf(words) };
  },
  share(given) {
    const sum = sumIn(given);
    const made = share(wordsIn(given, "words"), sum, memberIn(given));
    return { label: labelOf(sum), share: textsOf(made) };
  },
  total(given) {
    const largest = Number(given["largest"]);
    const fits = (words: BigUint64Array) =>
      words.every((word) => Math.abs(signedOf(word)) <= largest);
    const total = wordsIn(given, "total");
    const words = readTotal(total, sumIn(given), memberIn(given), fits);
    return { words: textsOf(words) };
  },
};
