/**
 * Stage: pooled mean and deviations of a column group's features, by blind sums.
 *
 * Fixed point needs a bound before it adds: members first count in which power of two
 * the largest value of each lies, and again for deviations from the pooled mean.
 */

import type { MomentsAddUp, MomentsShare } from "../generated/shared.ts";
import { exponentOf, roundToEven } from "../numerics/floats.ts";
import { FixedPoint } from "../secrecy/fixed-point.ts";
import { readTotal, share, type Sum } from "../secrecy/sums.ts";
import type { PartyContext, Reply, Role, Stage, Table } from "../session/contract.ts";
import { words } from "../wire/arrays.ts";
import { refuse } from "../wire/problems.ts";
import { groupRows, POOLED, squared, type Moments } from "./pooled.ts";
import { sumMember } from "./secrets.ts";

const LOWEST_POWER = -128;
const HIGHEST_POWER = 63;
const N_POWERS = HIGHEST_POWER - LOWEST_POWER + 1;
const COUNTS_PER_WORD = 7;
const BITS = 8; // of a count: a column group has at most 250 members
const WORDS = Math.ceil(N_POWERS / COUNTS_PER_WORD);
const LAST_PHASE = 5;
const LEAST_MEMBERS = 2;
const EPSILON = 2 ** -52;
const COUNTING = new Set([1, 3]);
const PROGRESS = "moments-progress";

/** What is known so far, and the transcript of the last phase's sum. */
interface Progress {
  readonly phase: number;
  readonly transcript: string;
  readonly powers: readonly number[];
  readonly mean: readonly number[];
  readonly deviationPowers: readonly number[];
}

const adder: Role = {
  reply(context, task, table): Reply {
    const { phase, total } = task as MomentsAddUp;
    const before = context.memory.get(PROGRESS) as Progress | undefined;
    if (phase !== (before ? before.phase + 1 : 1)) {
      refuse("protocol-failed", "The analyst asks for a phase out of order.");
    }
    const known = { ...learn(context, before, total.data), phase };
    const remember = { [PROGRESS]: { ...known, transcript: context.transcript } };
    if (phase === LAST_PHASE) {
      const pooled = pool(context, known, total.data);
      return { contribution: shared([]), remember: { ...remember, [POOLED]: pooled } };
    }
    const own = ownWords(context, phase, known, table);
    const sum = sumOf(context, phase, context.transcript);
    const hidden = share(own, sum, sumMember(context, "column"), LEAST_MEMBERS);
    return { contribution: shared(hidden), remember };
  },
};

export const MOMENTS: Stage = {
  name: "moments",
  exchanges: [
    {
      task: "add-up",
      answer: "share",
      least: LAST_PHASE,
      most: LAST_PHASE,
      audience: "column",
    },
  ],
  role: adder,
};

function shared(hidden: ArrayLike<bigint>): MomentsShare {
  return { kind: "share", words: words(BigUint64Array.from(hidden)) };
}

/** What is known with the total of the phase before. */
function learn(
  context: PartyContext,
  before: Progress | undefined,
  total: BigUint64Array,
): Progress {
  if (!before) {
    if (total.length) refuse("invalid-array", "The first phase has no earlier total.");
    return { phase: 0, transcript: "", powers: [], mean: [], deviationPowers: [] };
  }
  switch (before.phase) {
    case 1:
      return { ...before, powers: largestPowers(read(context, before, total)) };
    case 2: {
      const sums = encodingOf(context, before.powers).decode(
        read(context, before, total),
      );
      return { ...before, mean: Array.from(sums, (sum) => sum / groupRows(context)) };
    }
    case 3:
      return {
        ...before,
        deviationPowers: largestPowers(read(context, before, total)),
      };
    default:
      return before;
  }
}

function pool(context: PartyContext, known: Progress, total: BigUint64Array): Moments {
  const before = { ...known, phase: LAST_PHASE - 1 };
  const squares = encodingOf(context, doubled(known.deviationPowers));
  const { units } = encodingOf(context, known.powers);
  const rows = groupRows(context);
  const squaredSums = squares.decode(read(context, before, total));
  // the mean is known to half a unit, or to its last digit: less spread is none
  const deviations = squaredSums.map((found, feature) => {
    const digit = 4 * EPSILON * Math.abs(known.mean[feature]!);
    const step = Math.max(1 / units[feature]!, digit);
    return found <= rows * squared(step) ? 0 : found;
  });
  return { rows, mean: known.mean, deviations: [...deviations] };
}

function ownWords(
  context: PartyContext,
  phase: number,
  known: Progress,
  table: Table,
): BigUint64Array {
  const nothing = table.columns.map(() => 0);
  switch (phase) {
    case 1: // deviations may be twice as large
      return powerCounts(table, nothing, HIGHEST_POWER - 1);
    case 2:
      return sumOfUnits(context, table, known.powers, (x) => x);
    case 3:
      return powerCounts(table, known.mean, HIGHEST_POWER);
    default:
      return sumOfUnits(
        ...([context, table, doubled(known.deviationPowers)] as const),
        (x, feature) => squared(x - known.mean[feature]!),
      );
  }
}

/** For each feature a one at the power of two that bounds all |x - mean|. */
function powerCounts(
  table: Table,
  mean: readonly number[],
  most: number,
): BigUint64Array {
  const counts = table.columns.flatMap((name, feature) => {
    const largest = table.rows.reduce(
      (found, row) => Math.max(found, Math.abs(row[feature]! - mean[feature]!)),
      0,
    );
    const power =
      largest === 0 ? LOWEST_POWER : Math.max(exponentOf(largest), LOWEST_POWER);
    if (power > most) refuse("invalid-data", `Values of 2^62 and more, in ${name}.`);
    const index = power - LOWEST_POWER;
    const packed = new Array<bigint>(WORDS).fill(0n);
    packed[Math.floor(index / COUNTS_PER_WORD)] =
      1n << BigInt(BITS * (index % COUNTS_PER_WORD));
    return packed;
  });
  return BigUint64Array.from(counts);
}

/** Σ round(term · unit) for each feature, one rounding per row. */
function sumOfUnits(
  context: PartyContext,
  table: Table,
  powers: readonly number[],
  term: (x: number, feature: number) => number,
): BigUint64Array {
  const { units } = encodingOf(context, powers);
  const sums = table.columns.map((_, feature) => {
    let sum = 0n;
    for (const row of table.rows) {
      const value = term(row[feature]!, feature);
      if (Math.abs(value) > 2 ** powers[feature]!) {
        refuse(
          "protocol-failed",
          "The pooled bound is below some values of this party.",
        );
      }
      sum += BigInt(roundToEven(value * units[feature]!));
    }
    return sum;
  });
  return BigUint64Array.from(sums);
}

/** The total of the phase before. */
function read(
  context: PartyContext,
  before: Progress,
  total: BigUint64Array,
): BigUint64Array {
  const { n_columns } = context.member(context.slot);
  const size = n_columns * (COUNTING.has(before.phase) ? WORDS : 1) + 1;
  if (total.length !== size) {
    refuse("invalid-array", "A total has another length than its sum.");
  }
  const sum = sumOf(context, before.phase, before.transcript);
  return readTotal(total, sum, sumMember(context, "column"), (found) =>
    fits(context, before, found),
  );
}

/** Whether the total of a phase is one that members can have sent. */
function fits(context: PartyContext, before: Progress, found: BigUint64Array): boolean {
  if (COUNTING.has(before.phase)) {
    const members = context.group("column").length;
    return (
      found.every((word) => word >> BigInt(BITS * COUNTS_PER_WORD) === 0n) &&
      countsOf(found).every(
        (counts) =>
          counts.slice(N_POWERS).every((count) => count === 0) &&
          counts.reduce((sum, count) => sum + count, 0) === members,
      )
    );
  }
  if (before.phase === 2) return encodingOf(context, before.powers).fits(found);
  const isPositive = found.every((word) => BigInt.asIntN(64, word) >= 0n);
  return isPositive && encodingOf(context, doubled(before.deviationPowers)).fits(found);
}

function largestPowers(found: BigUint64Array): readonly number[] {
  return countsOf(found).map(
    (counts) => counts.findLastIndex((count) => count > 0) + LOWEST_POWER,
  );
}

/** The counts of each feature by power, and zeros behind them. */
function countsOf(packed: BigUint64Array): readonly (readonly number[])[] {
  const mask = BigInt(2 ** BITS - 1);
  return Array.from({ length: packed.length / WORDS }, (_, feature) =>
    Array.from(packed.subarray(feature * WORDS, (feature + 1) * WORDS)).flatMap(
      (word) =>
        Array.from({ length: COUNTS_PER_WORD }, (_, place) =>
          Number((word >> BigInt(BITS * place)) & mask),
        ),
    ),
  );
}

function encodingOf(context: PartyContext, powers: readonly number[]): FixedPoint {
  return new FixedPoint(powers.map((power) => groupRows(context) * 2 ** power));
}

function doubled(powers: readonly number[]): readonly number[] {
  return powers.map((power) => 2 * power);
}

function sumOf(context: PartyContext, phase: number, transcript: string): Sum {
  return { members: context.group("column"), name: `phase-${phase}`, transcript };
}
