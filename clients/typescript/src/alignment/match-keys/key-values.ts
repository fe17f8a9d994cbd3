/**
 * A party's rows as values of match keys, and which of them may be compared.
 *
 * A row has no value of a key if a cell is empty or stands for a missing value, or if
 * the steps leave nothing. A value that two rows of one party share does not tell which
 * of them it is, so neither is compared.
 */

import { refuse } from "../../wire/problems.ts";
import { normalForm, partsOf } from "../identifiers.ts";
import type { Alignment } from "../params.ts";
import { withoutStandIns } from "../stand-ins.ts";
import { columnsOf, nameOfPart, partsOfKeys, type KeyPart } from "./match-key.ts";
import { takeStep } from "./steps.ts";

/** The values of one key, in the order of the rows; unset where a row has none. */
export type KeyValues = readonly (string | undefined)[];

const BETWEEN = "\x1f";

/** The values of each key of these rows; refuses keys that name too few of them. */
export function keyValues(
  ids: readonly string[] | undefined,
  { matchKeys, normalisation, keyUniqueness }: Alignment,
): readonly KeyValues[] {
  const cells = readCells(ids, columnsOf(matchKeys), normalisation);
  const texts = new Map(
    partsOfKeys(matchKeys).map((part) => [nameOfPart(part), textsOf(part, cells)]),
  );
  return matchKeys.map((key, number) => {
    const columns = key.map((part) => texts.get(nameOfPart(part))!);
    return comparable(columns, number + 1, keyUniqueness);
  });
}

function readCells(
  ids: readonly string[] | undefined,
  columns: readonly string[],
  steps: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const rows = ids?.map(partsOf);
  if (!rows || rows.some((row) => row.length !== columns.length)) {
    return refuse(
      "invalid-data",
      "Rows are linked by match keys. Name these id columns, in this order: " +
        `${columns.join(", ")}.`,
    );
  }
  return new Map(
    columns.map((column, place) => {
      const form = (text: string) => normalForm(text, steps);
      const cells = rows.map((row) => row[place]!);
      return [column, withoutStandIns(eachOnce(cells, form))];
    }),
  );
}

/** The texts of a part; empty where a cell is, or nothing is left. */
function textsOf(
  { columns, steps }: KeyPart,
  cells: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const [first, ...others] = columns.map((name) => cells.get(name)!);
  const joined = first!.map((text, row) => {
    const all = [text, ...others.map((each) => each[row]!)];
    return all.every(Boolean) ? all.join(" ") : "";
  });
  return eachOnce(joined, (text) => steps.reduce(takeStep, text));
}

/** Texts in another form, which is made once of those that are equal. */
function eachOnce(
  texts: readonly string[],
  form: (text: string) => string,
): readonly string[] {
  const made = new Map<string, string>([["", ""]]);
  return texts.map((text) => {
    const known = made.get(text) ?? form(text).replaceAll(BETWEEN, " ");
    made.set(text, known);
    return known;
  });
}

function comparable(
  columns: readonly (readonly string[])[],
  number: number,
  least: number,
): KeyValues {
  const values = columns[0]!.map((_, row) => {
    const parts = columns.map((texts) => texts[row]!);
    return parts.every(Boolean) ? parts.join(BETWEEN) : undefined;
  });
  const filled = values.filter((value) => value !== undefined);
  const counts = new Map<string, number>();
  for (const value of filled) counts.set(value, (counts.get(value) ?? 0) + 1);
  const alone = values.map((value) => (counts.get(value!) === 1 ? value : undefined));
  const unique = alone.filter((value) => value !== undefined).length;
  if (filled.length && unique / filled.length < least) {
    refuse(
      "invalid-data",
      `Too few rows have a value of match key ${number} that no other row has. ` +
        "Ask the coordinator for other keys.",
    );
  }
  return alone;
}
