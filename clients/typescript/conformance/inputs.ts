/** What stands in the input of a case: hex, text and lists of it. */

import { unhex, type Part } from "../src/wire/bytes.ts";

export type Input = Readonly<Record<string, unknown>>;
export type Call = (given: Input) => object | Promise<object>;

export function textIn(given: Input, name: string): string {
  return given[name] as string;
}

export function numberIn(given: Input, name: string): number {
  return given[name] as number;
}

export function bytesIn(given: Input, name: string): Uint8Array {
  return unhex(textIn(given, name));
}

/** Words of 64 bits, written as decimal text. */
export function wordsIn(given: Input, name: string): BigUint64Array {
  return BigUint64Array.from(given[name] as string[], BigInt);
}

export function textsOf(words: Iterable<bigint>): string[] {
  return Array.from(words, String);
}

/** Parts that are joined; bytes among them are `{"hex": …}`. */
export function partsIn(parts: unknown): Part[] {
  return (parts as (string | number | bigint | { hex: string })[]).map((part) =>
    typeof part === "object" ? unhex(part.hex) : part,
  );
}
