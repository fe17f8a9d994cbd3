/**
 * A match key as terms write it: `given, surname | sorted-names + birth | year`.
 *
 * Parts stand between `+`. A part is one column or several, and steps behind `|`.
 */

import { isStep } from "./steps.ts";
import { refuse } from "../../wire/problems.ts";

/** Some columns of a key, and the steps through which their text goes, in order. */
export interface KeyPart {
  readonly columns: readonly string[];
  readonly steps: readonly string[];
}

export type MatchKey = readonly KeyPart[];

export function readMatchKey(text: string): MatchKey {
  return text.split("+").map((part) => {
    const [said, ...steps] = part.split("|").map((each) => each.trim());
    const unknown = steps.filter((step) => !isStep(step));
    if (unknown.length) {
      refuse(
        "guard-refused",
        `This client does not support: step ${unknown.join(", ")} of a match key.`,
      );
    }
    return { columns: said!.split(",").map((name) => name.trim()), steps };
  });
}

/** The columns that keys name, each once, in their order. */
export function columnsOf(keys: readonly MatchKey[]): readonly string[] {
  return [...new Set(keys.flat().flatMap(({ columns }) => columns))];
}

/** The parts of keys, each once, in their order. */
export function partsOfKeys(keys: readonly MatchKey[]): readonly KeyPart[] {
  const found = new Map(keys.flat().map((part) => [nameOfPart(part), part]));
  return [...found.values()];
}

/** A name that two parts share only if they are equal. */
export function nameOfPart({ columns, steps }: KeyPart): string {
  return [columns.join(", "), ...steps].join(" | ");
}
