/**
 * A party's audit of its own answers: how many of its rows would follow from them.
 *
 * Everybody together can know all of a party's sums over clusters. So no sum is answered
 * after which more than a quarter of the own rows follow from all sums of the session.
 * Sums of degrees are bounded by the numbers of rows instead.
 */

import type { Points } from "../../../numerics/points.ts";
import type { PartyContext } from "../../../session/contract.ts";
import { refuse } from "../../../wire/problems.ts";
import { countLabels } from "../cluster-sums.ts";
import { isFuzzy } from "../params.ts";
import type { RowsRound } from "./following.ts";
import { labelRows } from "./passes.ts";

const HISTORY = "row-history";
const SHARE = 0.25;
const MOST_ROWS = 2 ** 15; // of larger tables each sum counts as a row that follows
const MOST_ITEMS = 2 ** 22; // of what is decomposed; beyond, a bound counts
const NOTHING = 1e-9;

/**
 * In which sums own rows stood: rows of one class stood in the same ones.
 *
 * `sums`: how many are independent, at most. `labels`: of each partition, by classes.
 */
interface RowHistory {
  readonly sums: number;
  readonly ofRow: readonly number[];
  readonly labels: readonly (readonly number[])[];
}

/** The memory after sums around these centroids are answered; see {@link audit}. */
export function auditSums(
  here: RowsRound,
  rows: Points,
  centroids: Points,
): Readonly<Record<string, unknown>> {
  return isFuzzy(here.params) ? {} : audit(here.context, labelRows(rows, centroids));
}

/** Refuses to answer sums of the rows of each label where too many rows would follow. */
export function audit(
  context: PartyContext,
  labels: readonly number[],
): Readonly<Record<string, unknown>> {
  const size = labels.length;
  const most = Math.floor(SHARE * size);
  const history = extend(historyOf(context, size), labels);
  const following = countFollowing(history, most);
  if (following > most) {
    refuse(
      "guard-refused",
      `${following} of ${size} own rows could be computed from the sums that are ` +
        `answered and these; ${most} may. Choose fewer clusters, or a lower max_iter.`,
    );
  }
  return { [HISTORY]: history };
}

/** The sums that own rows were part of so far, in the last run. */
function historyOf(context: PartyContext, size: number): RowHistory {
  const own = context.memory.get(HISTORY) as RowHistory | undefined;
  const found = context.recallOfOtherRuns<RowHistory>(HISTORY);
  const none = { sums: 0, ofRow: new Array<number>(size).fill(0), labels: [] };
  return [...(own ? [own] : []), ...found].reduce(
    (last, each) => (each.sums > last.sums ? each : last),
    none,
  );
}

/** The history with a sum of each label; one of them follows from the first partition. */
export function extend(history: RowHistory, labels: readonly number[]): RowHistory {
  const there = new Set(labels).size;
  const sums = history.sums + there - (history.sums ? 1 : 0);
  if (labels.length > MOST_ROWS) return { ...history, sums };
  const classes = new Map<string, number>();
  const ofRow = labels.map((label, row) => {
    const name = `${history.ofRow[row]},${label}`;
    if (!classes.has(name)) classes.set(name, classes.size);
    return classes.get(name)!;
  });
  const parts = [...classes.keys()].map((name) => name.split(",").map(Number));
  const before = history.labels.map((each) => parts.map(([old]) => each[old!]!));
  return { sums, ofRow, labels: [...before, parts.map(([, label]) => label!)] };
}

/** How many rows follow; a bound from above where that is no more than `enough`. */
export function countFollowing(history: RowHistory, enough: number): number {
  const { sums, ofRow, labels } = history;
  if (!labels.length) return sums;
  const sizes = countLabels(ofRow, labels[0]!.length);
  const alone = sizes.filter((size) => size === 1).length;
  const bound = Math.min(sums, alone);
  const memberships = membershipsOf(labels);
  if (bound <= enough || memberships.length * sizes.length > MOST_ITEMS) return bound;
  return solvedColumns(memberships).filter((column) => sizes[column] === 1).length;
}

/** Different rows of zeros and ones, one for each cluster of each partition. */
function membershipsOf(labels: readonly (readonly number[])[]): Float64Array[] {
  const rows = labels.flatMap((partition) =>
    [...new Set(partition)].map((label) =>
      Float64Array.from(partition, (each) => Number(each === label)),
    ),
  );
  return [...new Map(rows.map((row) => [row.join(""), row])).values()];
}

/** The columns that linear equations determine, by elimination in place. */
function solvedColumns(rows: Float64Array[]): readonly number[] {
  const pivots: number[] = [];
  for (
    let column = 0;
    column < rows[0]!.length && pivots.length < rows.length;
    column++
  ) {
    const at = pivots.length;
    const largest = rows.reduce(
      (best, row, number) =>
        number > at && Math.abs(row[column]!) > Math.abs(rows[best]![column]!)
          ? number
          : best,
      at,
    );
    const pivot = rows[largest]!;
    if (Math.abs(pivot[column]!) < NOTHING) continue;
    [rows[at], rows[largest]] = [pivot, rows[at]!];
    const scale = pivot[column]!;
    pivot.forEach((x, f) => (pivot[f] = x / scale));
    rows.forEach((row, number) => {
      const share = row[column]!;
      if (number === at || share === 0) return;
      pivot.forEach((x, f) => (row[f]! -= share * x));
    });
    pivots.push(column);
  }
  return pivots.filter(
    (_, number) => rows[number]!.filter((x) => Math.abs(x) > NOTHING).length === 1,
  );
}
