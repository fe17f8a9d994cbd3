/** Whether the totals of degrees of many rounds could be solved for the rows behind them. */

import type { Agreement } from "../../../roster/roster.ts";
import { sumOf } from "../../../stages/pooled.ts";
import { refuse } from "../../../wire/problems.ts";
import { isFuzzy, type LlfParams } from "../params.ts";

const FURTHER_ROUNDS = 2; // the closing sums

/** Refuses a session in which a party could solve the totals for the rows of others. */
export function checkCohorts(params: LlfParams, { roster }: Agreement): void {
  if (!isFuzzy(params) || params.allowsSmallCohorts) return;
  const width = roster[0]!.n_columns;
  const rounds = params.maxIterations + FURTHER_ROUNDS;
  const needed = Math.ceil((2 * rounds * params.clusters * (width + 1)) / width);
  // who reads may be the one with most rows
  const rows = roster.map(({ n_rows }) => n_rows).sort((a, b) => a - b);
  const fewest = Math.min(params.quorum ?? rows.length, rows.length);
  const others = sumOf(rows.slice(0, Math.max(fewest - 1, 1)));
  if (others < needed) {
    refuse(
      "protocol-failed",
      `Totals over ${others} rows of others could be solved for them: it takes ${needed}.`,
    );
  }
}

/** Refuses to add degrees of so few rows that one total could be solved for them. */
export function checkOwnRows(params: LlfParams, rows: number, width: number): void {
  const needed = (params.starts * params.clustersOfRuns * (width + 1)) / width;
  if (rows <= needed) {
    refuse(
      "guard-refused",
      `Sums of degrees over ${rows} rows could be solved for them: it takes more than ` +
        `${Math.floor(needed)}, or fewer clusters.`,
    );
  }
}
