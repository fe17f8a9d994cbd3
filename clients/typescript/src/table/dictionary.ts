/** The columns in terms: which are clustered, and which values they may hold. */

import type { Field, Terms } from "../roster/terms.ts";
import type { Table } from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";

const DAY_MS = 86_400_000;

/** The least and the largest value of a column. */
export type Range = readonly [low: number, high: number];

/** The columns of a table that are clustered; refuses a value outside its range. */
export function clusteredColumns(table: Table, terms: Terms, column: number): Table {
  const fields = clusteredFields(terms, column);
  if (!fields) return table;
  const held = table.columns.map(normal);
  const places = fields.map(({ name }) => held.indexOf(normal(name)));
  const missing = fields.filter((_, place) => places[place] === -1);
  if (missing.length) {
    const names = missing.map(({ name }) => name).join(", ");
    refuse(
      "invalid-data",
      `The terms describe columns that the table lacks: ${names}.`,
    );
  }
  const ranges = fields.map(rangeOf);
  const rows = table.rows.map((row, number) => {
    const values = Float64Array.from(places, (place) => row[place]!);
    const isOutside = ranges.some(([low, high], f) => !isWithin(values[f]!, low, high));
    if (isOutside) {
      refuse("invalid-data", `Row ${number + 1} has a value outside the terms' range.`);
    }
    return values;
  });
  return { ...table, columns: fields.map(({ name }) => name), rows };
}

/** The ranges of the columns of a column group, so many; infinite where nothing is said. */
export function rangesOf(
  terms: Terms,
  column: number,
  columns: number,
): readonly Range[] {
  const fields = clusteredFields(terms, column);
  return (
    fields?.map(rangeOf) ?? Array.from({ length: columns }, () => [-Infinity, Infinity])
  );
}

function clusteredFields(
  { dictionary }: Terms,
  column: number,
): readonly Field[] | undefined {
  const fields = dictionary?.[column]!.fields;
  return fields?.filter(({ role = "cluster" }) => role === "cluster");
}

function rangeOf({ type, constraints }: Field): Range {
  if (type === "boolean") return [0, 1];
  const { minimum, maximum } = constraints ?? {};
  return [endOf(minimum, -Infinity), endOf(maximum, Infinity)];
}

/** An end of a range; that of dates in days since 1970. */
function endOf(said: number | string | null | undefined, unknown: number): number {
  return typeof said === "string" ? Date.parse(said) / DAY_MS : (said ?? unknown);
}

function isWithin(value: number, low: number, high: number): boolean {
  return low <= value && value <= high;
}

/** A name as it is compared. */
function normal(name: string): string {
  return name.normalize("NFC").trim();
}
