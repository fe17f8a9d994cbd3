/** Pooled moments of a column group's features: what their stages leave in memory. */

import type { PartyContext, Table } from "../session/contract.ts";

/** Rows, the mean of each feature, and its sum of squared deviations. */
export interface Moments {
  readonly rows: number;
  readonly mean: readonly number[];
  readonly deviations: readonly number[];
}

export const POOLED = "pooled-moments";

/** How many rows of a party's column group take part. */
export function groupRows(context: PartyContext): number {
  const counts = context.group("column").map((slot) => context.rowsOf(slot));
  return counts.reduce((sum, each) => sum + each, 0);
}

/** The standard deviation (divisor n) of each feature. */
export function spreadOf({ rows, deviations }: Moments): readonly number[] {
  return deviations.map((sum) => Math.sqrt(sum / rows));
}

/** By what each feature is divided: its spread, or 1 where there is none. */
export function unitsOf(moments: Moments): readonly number[] {
  return spreadOf(moments).map((spread) => (spread > 0 ? spread : 1));
}

/** Moments of a party's own rows, in two passes. */
export function measure({ columns, rows }: Table): Moments {
  const found = columns.map((_, feature) => {
    const values = rows.map((row) => row[feature]!);
    const [first] = values;
    const isConstant = values.every((value) => value === first);
    // rounding would give a constant feature a spread, and it a dimension
    const mean = isConstant ? first! : sumOf(values) / rows.length;
    return { mean, deviation: sumOf(values.map((value) => squared(value - mean))) };
  });
  return {
    rows: rows.length,
    mean: found.map(({ mean }) => mean),
    deviations: found.map(({ deviation }) => deviation),
  };
}

/** Exactly x · x, which `**` need not be. */
export function squared(x: number): number {
  return x * x;
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
