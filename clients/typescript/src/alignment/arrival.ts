/** A party's table arrives at a session: which rows take part, in which order. */

import { groupOf, type Terms } from "../roster/terms.ts";
import type { Outcome, Table } from "../session/contract.ts";
import { clusteredColumns } from "../table/dictionary.ts";
import { refuse } from "../wire/problems.ts";
import { normalisedId } from "./identifiers.ts";
import { keyValues, type KeyValues } from "./match-keys/key-values.ts";
import type { Alignment } from "./params.ts";
import { unnamedRows } from "./stand-ins.ts";

/** `rows`: numbers of the party's own rows, in the order in which they take part. */
export interface Arrival {
  readonly table: Table;
  readonly rows: readonly number[];
}

/** Different ids in the form in which they are compared, and the rows that they name. */
interface Identified {
  readonly ids: readonly string[];
  readonly rows: readonly number[];
}

/** The rows and columns of a party's table that take part in a session, in their order. */
export function arrive(
  table: Table,
  terms: Terms,
  slot: string,
  alignment: Alignment | undefined,
): Arrival {
  const { column } = terms.layout.slots.find(({ name }) => name === slot)!;
  const own = clusteredColumns(table, terms, column);
  const isShared = groupOf(terms, slot, "row").length > 1;
  const chosen =
    alignment && isShared ? sharedRows(own, alignment) : ownRows(own, alignment);
  return chosen
    ? { table: pickRows(own, chosen), rows: chosen }
    : { table: own, rows: [...own.rows.keys()] };
}

/** Rows that other parties hold too; unset if all rows take part in their own order. */
function sharedRows(
  { ids }: Table,
  alignment: Alignment,
): readonly number[] | undefined {
  const { method } = alignment;
  if (method === "ecdh") {
    const keys = comparedValues(ids, alignment); // refuses keys that name too few rows
    if (keys.every((values) => values.every((value) => value === undefined))) {
      refuse(
        "invalid-data",
        "No row can be linked: its ids or match keys are empty, belong to several " +
          "rows, or stand for a missing value. Name the right id columns.",
      );
    }
    return undefined;
  }
  if (!ids && method === "position") return undefined;
  const found = identify(ids, alignment);
  return method === "declared" ? rowsById(found) : found.rows;
}

/** The values by which rows are linked: those of each match key, or else their ids. */
export function comparedValues(
  ids: readonly string[] | undefined,
  alignment: Alignment,
): readonly KeyValues[] {
  if (alignment.matchKeys.length) return keyValues(ids, alignment);
  const own = identify(ids, alignment);
  const names = new Map(own.rows.map((row, place) => [row, own.ids[place]!]));
  return [ids!.map((_, row) => names.get(row))];
}

/** Rows that nobody else holds: only the party itself needs their ids. */
function ownRows(
  { ids = [] }: Table,
  alignment: Alignment | undefined,
): readonly number[] | undefined {
  const first = new Map<string, number>();
  ids.forEach((id, row) => first.has(id) || first.set(id, row));
  if (first.size === ids.length) return undefined;
  if (alignment?.duplicates !== "first") {
    refuse("invalid-data", "Two rows have the same id.");
  }
  return [...first.values()];
}

/** Refuses empty ids, and equal ones unless the first of them counts. */
function identify(
  names: readonly string[] | undefined,
  { method, normalisation, duplicates }: Alignment,
): Identified {
  if (!names) {
    return refuse(
      "invalid-data",
      "Other parties hold the same rows: name an id column.",
    );
  }
  const seen = new Map<string, number>();
  const unnamed = method === "ecdh" ? unnamedRows(names) : new Set<number>();
  names.forEach((name, row) => {
    if (unnamed.has(row)) return;
    const id = normalisedId(name, normalisation);
    if (id.includes('""')) {
      refuse("invalid-data", `Row ${row + 1} has no id after normalisation.`);
    }
    const first = seen.get(id);
    if (first === undefined) seen.set(id, row);
    else if (duplicates === "error") {
      refuse("invalid-data", `Rows ${first + 1} and ${row + 1} have the same id.`);
    }
  });
  return { ids: [...seen.keys()], rows: [...seen.values()] };
}

export function pickRows(
  { columns, rows, ids }: Table,
  chosen: readonly number[],
): Table {
  const picked = { columns, rows: chosen.map((row) => rows[row]!) };
  return ids ? { ...picked, ids: chosen.map((row) => ids[row]!) } : picked;
}

/** Labels in the order of the party's own table; -1 for rows that took no part. */
export function putBack(
  { labels }: Outcome,
  rows: readonly number[],
  size: number,
): Outcome {
  const whole = new Array<number>(size).fill(-1);
  rows.forEach((row, place) => (whole[row] = labels[place]!));
  return { labels: whole };
}

/** Rows in the order of their ids, by code points. */
function rowsById({ ids, rows }: Identified): readonly number[] {
  const keys = ids.map((id) => Buffer.from(id));
  const order = [...ids.keys()].sort((a, b) => Buffer.compare(keys[a]!, keys[b]!));
  return order.map((place) => rows[place]!);
}
