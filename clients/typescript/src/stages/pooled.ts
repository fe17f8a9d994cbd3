/** Moments and ranges of features: a party's own, and what stages leave in memory. */

import type { PartyContext, Table } from "../session/contract.ts";

/** Rows; of each feature mean and sum of squared deviations. */
export interface Moments {
  readonly rows: number;
  readonly mean: readonly number[];
  readonly deviations: readonly number[];
}

/** Of each feature the least and the largest value. */
export interface Ranges {
  readonly minimum: readonly number[];
  readonly maximum: readonly number[];
}

export const POOLED = "pooled-moments";
export const POOLED_RANGES = "pooled-ranges";

/** How many rows of a party's column group take part. */
export function groupRows(context: PartyContext): number {
  const counts = context.group("column").map((slot) => context.rowsOf(slot));
  return counts.reduce((sum, each) => sum + each, 0);
}

/** The moments of a party's column group; of its own rows, if it is alone there. */
export function momentsOf(context: PartyContext, table?: Table): Moments {
  const isAlone = context.group("column").length === 1;
  const isMissing = isAlone && !context.memory.has(POOLED);
  return isMissing && table ? measure(table) : context.recall<Moments>(POOLED);
}

/** The standard deviation (divisor n) of each feature. */
export function spreadOf({ rows, deviations }: Moments): readonly number[] {
  return deviations.map((sum) => Math.sqrt(sum / rows));
}

/** The divisor of each feature: its spread, or 1 if it has none. */
export function unitsOf(moments: Moments): readonly number[] {
  return spreadOf(moments).map((spread) => (spread > 0 ? spread : 1));
}

/** Moments and ranges of a party's own rows, in two passes. */
export function measure({ columns, rows }: Table): Moments & Ranges {
  const found = columns.map((_, feature) => {
    const values = rows.map((row) => row[feature]!);
    const minimum = values.reduce((least, value) => Math.min(least, value));
    const maximum = values.reduce((most, value) => Math.max(most, value));
    // rounding would give a constant feature a spread, and it a dimension
    const mean = minimum === maximum ? minimum : sumOf(values) / rows.length;
    const deviation = sumOf(values.map((value) => squared(value - mean)));
    return { mean, deviation, minimum, maximum };
  });
  return {
    rows: rows.length,
    mean: found.map(({ mean }) => mean),
    deviations: found.map(({ deviation }) => deviation),
    minimum: found.map(({ minimum }) => minimum),
    maximum: found.map(({ maximum }) => maximum),
  };
}

/** Exactly x · x, which `**` need not be. */
export function squared(x: number): number {
  return x * x;
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
