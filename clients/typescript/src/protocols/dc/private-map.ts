/** The private map of a party: scaling, principal axes, a secret rotation. */

import { Matrix } from "ml-matrix";
import { drawRotation, rightSingularVectors } from "../../numerics/linear-algebra.ts";
import type { PartyContext, Table } from "../../session/contract.ts";
import { measure, momentsOf, unitsOf, type Moments } from "../../stages/pooled.ts";
import { refuse } from "../../wire/problems.ts";
import type { DcParams } from "./params.ts";

const EPSILON = 2 ** -52;

/** x → ((x - offset) / scale) · axes. */
export interface PrivateMap {
  readonly offset: readonly number[];
  readonly scale: readonly number[];
  readonly axes: Matrix;
}

/** The map of a party's rows; it leaves one of their dimensions out, or none. */
export function fitMap(
  context: PartyContext,
  params: DcParams,
  table: Table,
): PrivateMap {
  const own = measure(table);
  const [offset, scale] = offsetAndScale(context, params, own, table);
  const axes = params.leavesOneOut
    ? leadingAxes(table, own.mean, scale)
    : Matrix.eye(table.columns.length);
  const rotation = drawRotation(context.lastingStream("rotation"), axes.columns);
  return { offset, scale, axes: axes.mmul(rotation) };
}

function offsetAndScale(
  context: PartyContext,
  { scaling }: DcParams,
  own: Moments,
  table: Table,
): [readonly number[], readonly number[]] {
  const ones = own.mean.map(() => 1);
  switch (scaling) {
    case "none":
      return [own.mean.map(() => 0), ones];
    case "center":
      return [own.mean, ones];
    case "local":
      return [own.mean, unitsOf(own)];
    case "shared": {
      const pooled = momentsOf(context, table);
      return [pooled.mean, unitsOf(pooled)];
    }
  }
}

/** All principal axes but the last of those that the rows have. */
function leadingAxes(
  table: Table,
  mean: readonly number[],
  scale: readonly number[],
): Matrix {
  const rows = new Matrix(table.rows.map((row) => [...row]));
  const shift = Math.hypot(...mean.map((each, feature) => each / scale[feature]!));
  const { axes, values } = rightSingularVectors(scaled(rows, mean, scale));
  const rank = rankOf(values, table, shift);
  if (rank === 1) {
    refuse("guard-refused", "The rows have one dimension, and none can be left out.");
  }
  const width = Math.max(1, Math.min(rank, table.rows.length) - 1);
  return axes.subMatrix(0, axes.rows - 1, 0, width - 1);
}

export function applyMap({ offset, scale, axes }: PrivateMap, rows: Matrix): Matrix {
  return scaled(rows, offset, scale).mmul(axes);
}

/** Singular values above rounding: x - mean is rounded relative to x. */
function rankOf(values: readonly number[], { columns, rows }: Table, shift: number) {
  const [largest = 0] = values;
  const size = Math.max(rows.length, columns.length);
  const threshold = size * EPSILON * Math.max(largest, shift);
  return values.filter((value) => value > threshold).length;
}

function scaled(
  rows: Matrix,
  offset: readonly number[],
  scale: readonly number[],
): Matrix {
  return rows
    .clone()
    .subRowVector([...offset])
    .divRowVector([...scale]);
}
