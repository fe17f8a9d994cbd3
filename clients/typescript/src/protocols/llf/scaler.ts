/** The units in which rows are compared, and the bounds that follow from them. */

import type { Point, Points } from "../../numerics/points.ts";
import { audiences } from "../../roster/terms.ts";
import type { PartyContext, Table } from "../../session/contract.ts";
import {
  momentsOf,
  POOLED,
  squared,
  sumOf,
  unitsOf,
  type Moments,
} from "../../stages/pooled.ts";
import { groupStream } from "../../stages/secrets.ts";
import { rangesOf, type Range } from "../../table/dictionary.ts";
import { isFromParties, type LlfParams } from "./params.ts";

export const START = "start-centroids";
const ROUNDING = 1.001;

/** The bounds and the small step that follow from a column's units. */
interface Limits {
  /** The largest absolute value of a scaled feature. */
  readonly value: number;
  /** The largest sum of its absolute values, and of its squares. */
  readonly sum: number;
  readonly squares: number;
  readonly step: number;
}

/** A row counts as (x - offset) · inverse. */
export class Scaler {
  readonly offset: Float64Array;
  readonly inverse: Float64Array;
  readonly limits: readonly Limits[];

  private constructor(
    offset: ArrayLike<number>,
    inverse: ArrayLike<number>,
    limits: readonly Limits[],
  ) {
    this.offset = Float64Array.from(offset);
    this.inverse = Float64Array.from(inverse);
    this.limits = limits;
  }

  static of(context: PartyContext, params: LlfParams, table?: Table): Scaler {
    const { column } = context.place;
    const limits = limitsOf(context, params, column);
    if (params.scaling === "standard") {
      const moments = momentsOf(context, table);
      const inverse = unitsOf(moments).map((unit) => 1 / unit);
      return new Scaler(moments.mean, inverse, limits);
    }
    const isScaled = params.scaling === "minmax";
    const ranges = rangesOf(context.agreement.terms, column, limits.length);
    return new Scaler(
      ranges.map(([low]) => (isScaled ? low : 0)),
      ranges.map((range) => (isScaled ? 1 / widthOf(range) : 1)),
      limits,
    );
  }

  get width(): number {
    return this.offset.length;
  }

  get steps(): Float64Array {
    return Float64Array.from(this.limits, ({ step }) => step);
  }

  scaled(row: ArrayLike<number>): Point {
    return this.offset.map((offset, f) => (row[f]! - offset) * this.inverse[f]!);
  }

  undone(point: Point): Point {
    return point.map((z, f) => z / this.inverse[f]! + this.offset[f]!);
  }

  /** A squared distance that no row has to any of these points. */
  farthestFrom(points: Points): number {
    return this.limits.reduce((sum, { value }, f) => {
      const largest = Math.max(...points.map((point) => Math.abs(point[f]!)));
      return sum + squared(value + largest);
    }, 0);
  }
}

/** The limits of the columns of a column group: also of another than the party's own. */
export function limitsOf(
  context: PartyContext,
  { scaling }: LlfParams,
  column: number,
): readonly Limits[] {
  const { terms } = context.agreement;
  const slots = audiences(terms, "column")[column]!;
  const rows = sumOf(slots.map((slot) => context.rowsOf(slot)));
  const ranges = rangesOf(terms, column, context.member(slots[0]!).n_columns);
  return ranges.map((range) => {
    switch (scaling) {
      case "standard": {
        // Σz² = n and, by Cauchy and Schwarz, Σ|z| ≤ n
        const most = ROUNDING * rows;
        return { value: ROUNDING * Math.sqrt(rows), sum: most, squares: most, step: 1 };
      }
      case "minmax":
        return { value: 1, sum: rows, squares: rows, step: 1 };
      case "none": {
        const value = Math.max(...range.map(Math.abs)) || 1;
        const step = widthOf(range);
        return { value, sum: rows * value, squares: rows * squared(value), step };
      }
    }
  });
}

/** The width of a range; 1 if the range is a point. */
function widthOf([low, high]: Range): number {
  return high > low ? high - low : 1;
}

/** What a first answer over columns remembers: a party alone measures its rows once. */
export function rememberedScale(
  context: PartyContext,
  params: LlfParams,
  table: Table,
): Record<string, Moments> {
  return params.scaling === "standard" ? { [POOLED]: momentsOf(context, table) } : {};
}

/** This party's coordinates of the start, given by the terms or found in a stage. */
export function startOf(
  context: PartyContext,
  params: LlfParams,
  table?: Table,
): Points {
  if (isFromParties(params)) return context.recall<Points>(START);
  if (params.init === "bounds") return drawWithin(context, params, table);
  const { terms, roster } = context.agreement;
  const widths = audiences(terms, "column").map(
    ([first]) => roster.find(({ slot }) => slot === first)!.n_columns,
  );
  const begin = sumOf(widths.slice(0, context.place.column));
  const scaler = Scaler.of(context, params, table);
  return params.initialCentroids.map((point) =>
    scaler.scaled(point.slice(begin, begin + scaler.width)),
  );
}

/** This party's coordinates of a start that is drawn within the ranges of the terms. */
function drawWithin(context: PartyContext, params: LlfParams, table?: Table): Points {
  const { column } = context.place;
  const scaler = Scaler.of(context, params, table);
  const ranges = rangesOf(context.agreement.terms, column, scaler.width);
  // parties of a row group hold different columns
  const areRowsSplit = audiences(context.agreement.terms, "column").length === 1;
  const scope = areRowsSplit ? "column" : "row";
  const stream = groupStream(context, scope, `start/${column}`);
  return Array.from({ length: params.clusters }, () => {
    const drawn = stream.uniform(scaler.width);
    const inside = ranges.map(([low, high], f) => low + (high - low) * drawn[f]!);
    // ranges may be wide, and rows near to each other
    return scaler.scaled(inside).map((z, f) => {
      const { value } = scaler.limits[f]!;
      return Math.min(Math.max(z, -value), value);
    });
  });
}
