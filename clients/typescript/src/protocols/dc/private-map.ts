/** The private map of a party: scaling, principal axes, a secret rotation. */

import { Matrix } from "ml-matrix";
import { drawRotation, rightSingularVectors } from "../../numerics/linear-algebra.ts";
import type { KeyedStream } from "../../secrecy/chance.ts";
import type { Table } from "../../session/contract.ts";
import { measure, unitsOf, type Moments } from "../../stages/pooled.ts";
import { refuse } from "../../wire/problems.ts";

const EPSILON = 2 ** -52;

/** x → ((x - offset) / scale) · axes. */
export interface PrivateMap {
  readonly offset: readonly number[];
  readonly scale: readonly number[];
  readonly axes: Matrix;
}

/** The map of a party's rows, which leaves one of their dimensions out. */
export function fitMap(table: Table, pooled: Moments, stream: KeyedStream): PrivateMap {
  const [offset, scale] = [pooled.mean, unitsOf(pooled)];
  const own = measure(table).mean;
  const centred = scaled(new Matrix(table.rows.map((row) => [...row])), own, scale);
  const shift = Math.hypot(...own.map((mean, feature) => mean / scale[feature]!));
  const { axes, values } = rightSingularVectors(centred);
  const rank = rankOf(values, table, shift);
  if (rank === 1) {
    refuse("guard-refused", "The rows have one dimension, and none can be left out.");
  }
  const width = Math.max(1, Math.min(rank, table.rows.length) - 1);
  const kept = axes.subMatrix(0, axes.rows - 1, 0, width - 1);
  return { offset, scale, axes: kept.mmul(drawRotation(stream, width)) };
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
