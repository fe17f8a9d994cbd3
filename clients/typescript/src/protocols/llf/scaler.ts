/** The units in which rows are compared, and what bounds follow from them. */

import type { Point, Points } from "../../numerics/points.ts";
import { audiences } from "../../roster/terms.ts";
import type { PartyContext } from "../../session/contract.ts";
import {
  groupRows,
  POOLED,
  squared,
  sumOf,
  unitsOf,
  type Moments,
} from "../../stages/pooled.ts";
import type { LlfParams } from "./params.ts";

export const START = "start-centroids";
const ROUNDING = 1.001;

/** A row counts as (x - offset) · inverse; scaled features have a spread of one. */
export class Scaler {
  readonly offset: Float64Array;
  readonly inverse: Float64Array;
  /** The largest sum of absolute values of a scaled feature, and of its squares. */
  readonly sumLimit: number;
  readonly #limit: number;

  constructor(moments: Moments, rows: number) {
    this.offset = Float64Array.from(moments.mean);
    this.inverse = Float64Array.from(unitsOf(moments), (unit) => 1 / unit);
    this.sumLimit = largestSum(rows);
    this.#limit = largestValue(rows);
  }

  static of(context: PartyContext): Scaler {
    return new Scaler(context.recall<Moments>(POOLED), groupRows(context));
  }

  get width(): number {
    return this.offset.length;
  }

  scaled(row: ArrayLike<number>): Point {
    return this.offset.map((offset, f) => (row[f]! - offset) * this.inverse[f]!);
  }

  undone(point: Point): Point {
    return point.map((z, f) => z / this.inverse[f]! + this.offset[f]!);
  }

  /** A squared distance that no row has to any of these points. */
  farthestFrom(points: Points): number {
    return this.offset.reduce((sum, _, f) => {
      const largest = Math.max(...points.map((point) => Math.abs(point[f]!)));
      return sum + squared(this.#limit + largest);
    }, 0);
  }
}

/** The largest sum of absolute values, and of squares, of a scaled feature. */
export function largestSum(rows: number): number {
  return ROUNDING * rows; // Σz² = n and, by Cauchy and Schwarz, Σ|z| ≤ n
}

/** The largest absolute value of a scaled feature. */
export function largestValue(rows: number): number {
  return ROUNDING * Math.sqrt(rows);
}

/** This party's coordinates of the start, given by the terms or found in a stage. */
export function startOf(context: PartyContext, params: LlfParams): Points {
  if (params.init !== "given") return context.recall<Points>(START);
  const { terms, roster } = context.agreement;
  const widths = audiences(terms, "column").map(
    ([first]) => roster.find(({ slot }) => slot === first)!.n_columns,
  );
  const begin = sumOf(widths.slice(0, context.place.column));
  const scaler = Scaler.of(context);
  return params.initialCentroids.map((point) =>
    scaler.scaled(point.slice(begin, begin + scaler.width)),
  );
}
