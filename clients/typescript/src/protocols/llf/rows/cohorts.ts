/** Whether the totals of degrees of many rounds could be solved for the rows behind them. */

import type { Points } from "../../../numerics/points.ts";
import type { Agreement } from "../../../roster/roster.ts";
import { RING_BITS } from "../../../secrecy/fixed-point.ts";
import { sumOf } from "../../../stages/pooled.ts";
import { refuse } from "../../../wire/problems.ts";
import { isFuzzy, type LlfParams } from "../params.ts";

const NEARLY_ALL = 0.95; // of more different values, a column counts as real numbers
const MOST_DISTINCT = 65_536; // further values are not counted

/** Refuses a session in which a party could solve the totals for the rows of others. */
export function checkCohorts(params: LlfParams, agreement: Agreement): void {
  if (!isFuzzy(params) || params.allowsSmallCohorts) return;
  const width = agreement.roster[0]!.n_columns;
  const needed = Math.ceil(unknownsNeeded(params, width) / width);
  const others = fewestOthers(params, agreement);
  if (others < needed) {
    refuse(
      "protocol-failed",
      `Totals over ${others} rows of others could be solved for them: it takes ${needed}.`,
    );
  }
}

/** Refuses columns of so few values that totals show how many rows are of each kind. */
export function checkValues(
  params: LlfParams,
  agreement: Agreement,
  rows: Points,
): void {
  if (params.allowsSmallCohorts) return;
  const width = rows[0]!.length;
  const bits = Array.from({ length: width }, (_, f) => {
    const all = new Set(rows.map((row) => row[f])).size;
    const distinct = Math.min(all, MOST_DISTINCT);
    return distinct < NEARLY_ALL * rows.length ? Math.log2(distinct) : RING_BITS;
  });
  const others = fewestOthers(params, agreement);
  if (countUnknowns(bits, others) < unknownsNeeded(params, width)) {
    refuse(
      "guard-refused",
      "Columns repeat their values: totals would show which rows the parties have.",
    );
  }
}

/** The information in rows, in numbers as long as a total; `bits`: those of a cell. */
function countUnknowns(bits: readonly number[], rows: number): number {
  const ofRow = sumOf(bits);
  // if few different rows are possible, how many there are of each determines all
  const ofKinds = 2 ** Math.min(ofRow, 60) * Math.log2(rows + 1);
  const isReal = bits.includes(RING_BITS);
  return (isReal ? rows * ofRow : Math.min(rows * ofRow, ofKinds)) / RING_BITS;
}

function unknownsNeeded(params: LlfParams, width: number): number {
  const rounds = params.maxIterations + 2; // two sums close
  return 2 * rounds * params.clustersOfRuns * (width + 1);
}

/** The rows of others in the smallest total, if the party with most rows reads it. */
function fewestOthers(params: LlfParams, { roster }: Agreement): number {
  const rows = roster.map(({ n_rows }) => n_rows).sort((a, b) => a - b);
  const fewest = Math.min(params.quorum ?? rows.length, rows.length);
  return sumOf(rows.slice(0, Math.max(fewest - 1, 1)));
}

/** Refuses to add degrees of so few rows that one total could be solved for them. */
export function checkOwnRows(params: LlfParams, rows: number, width: number): void {
  const needed = (params.clustersOfRuns * (width + 1)) / width;
  if (rows <= needed) {
    refuse(
      "guard-refused",
      `Sums of degrees over ${rows} rows could be solved for them: it takes more than ` +
        `${Math.floor(needed)}, or fewer clusters.`,
    );
  }
}
