/** Calls about chance (spec, section 2). */

import { KeyedStream, type WordSource } from "../src/secrecy/chance.ts";
import { ownStream } from "../src/secrecy/own-streams.ts";
import { drawResidues } from "../src/secrecy/field.ts";
import {
  bytesIn,
  numberIn,
  textIn,
  textsOf,
  wordsIn,
  type Call,
  type Input,
} from "./inputs.ts";

/** Words that are given, one after the other. */
class GivenWords implements WordSource {
  constructor(private left: BigUint64Array) {}

  words(size: number): BigUint64Array {
    const found = this.left.slice(0, size);
    this.left = this.left.slice(size);
    return found;
  }
}

function streamIn(given: Input): KeyedStream {
  return new KeyedStream(bytesIn(given, "key"));
}

export const CHANCE: Readonly<Record<string, Call>> = {
  words(given) {
    const stream = streamIn(given);
    const sizes = given["sizes"] as number[];
    return { words: sizes.map((size) => textsOf(stream.words(size))) };
  },
  uniform: (given) => ({
    numbers: [...streamIn(given).uniform(numberIn(given, "size"))],
  }),
  normal: (given) => ({
    numbers: [...streamIn(given).normal(numberIn(given, "size"))],
  }),
  permutation: (given) => ({
    order: streamIn(given).permutation(numberIn(given, "size")),
  }),
  residues(given) {
    const source = new GivenWords(wordsIn(given, "words"));
    return { residues: textsOf(drawResidues(source, numberIn(given, "size"))) };
  },
  "own-words"(given) {
    const place = {
      session: textIn(given, "session"),
      slot: textIn(given, "slot"),
      stage: textIn(given, "stage"),
    };
    const stream = ownStream(
      ...([bytesIn(given, "entropy"), place, textIn(given, "purpose")] as const),
      textIn(given, "transcript"),
    );
    return { words: textsOf(stream.words(numberIn(given, "size"))) };
  },
};
