/** Reads tables from comma-separated text (RFC 4180). */

import type { Table } from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";

const CELL = /(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/y;

/**
 * The rows of a text whose first line names the columns.
 *
 * Every cell but those of id columns is a finite number: this client fills no missing
 * value, and codes no category. Several id columns name a row together.
 */
export function readCsv(text: string, ...idColumns: readonly string[]): Table {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  const [head, ...body] = lines.filter((line) => line !== "").map(cellsOf);
  if (!head || !body.length) return refuse("invalid-data", "The table has no rows.");
  const idsAt = idColumns.map((name) => head.indexOf(name));
  if (idsAt.includes(-1)) {
    refuse("invalid-data", `The table lacks a column of ${idColumns.join(", ")}.`);
  }
  const withoutIds = (cells: readonly string[]) =>
    cells.filter((_, place) => !idsAt.includes(place));
  const columns = withoutIds(head);
  if (new Set(columns).size < columns.length) {
    refuse("invalid-data", "Two columns have one name.");
  }
  const rows = body.map((cells, index) => {
    if (cells.length !== head.length) {
      refuse("invalid-data", `Line ${index + 2} has ${cells.length} cells.`);
    }
    return Float64Array.from(withoutIds(cells), (cell) => numberIn(cell, index + 2));
  });
  return idsAt.length
    ? { columns, rows, ids: body.map((cells) => idOf(idsAt.map((at) => cells[at]!))) }
    : { columns, rows };
}

/** The id of a row that these cells name: of several the JSON list. */
function idOf(cells: readonly string[]): string {
  return cells.length === 1 ? cells[0]! : JSON.stringify(cells);
}

function cellsOf(line: string): string[] {
  const cells: string[] = [];
  CELL.lastIndex = 0;
  while (CELL.lastIndex < line.length || !cells.length) {
    const [whole, quoted, plain] = CELL.exec(line) ?? [];
    if (whole === undefined || (whole === "" && cells.length)) {
      refuse("invalid-data", "A line of the table cannot be read.");
    }
    cells.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
  }
  return cells;
}

/** The number in a cell; the message names its line, never its text. */
function numberIn(cell: string, line: number): number {
  const number = cell.trim() === "" ? NaN : Number(cell);
  if (!Number.isFinite(number)) {
    refuse("invalid-data", `Line ${line} has a cell that is not a number.`);
  }
  return number;
}
