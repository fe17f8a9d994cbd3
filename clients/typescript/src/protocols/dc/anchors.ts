/** Anchors of a column group: all its parties draw the same; only they know them. */

import type { Matrix } from "ml-matrix";
import {
  drawOrthogonalColumns,
  drawRotation,
  matrixOf,
} from "../../numerics/linear-algebra.ts";
import type { Agreement } from "../../roster/roster.ts";
import { audiences } from "../../roster/terms.ts";
import type { PartyContext, Table } from "../../session/contract.ts";
import {
  momentsOf,
  POOLED_RANGES,
  spreadOf,
  squared,
  sumOf,
  type Moments,
  type Ranges,
} from "../../stages/pooled.ts";
import { groupStream } from "../../stages/secrets.ts";
import { refuse } from "../../wire/problems.ts";
import type { DcParams } from "./params.ts";

const LEAST_ANCHORS = 500;
const UNIFORM_SPREAD = 12 ** -0.5;

export function drawAnchors(
  context: PartyContext,
  params: DcParams,
  table: Table,
): Matrix {
  const rows = countAnchors(context.agreement, params);
  const width = context.member(context.slot).n_columns;
  const stream = groupStream(context, "column", "anchors");
  if (params.anchors === "uniform") {
    const { minimum, maximum } = context.recall<Ranges>(POOLED_RANGES);
    const span = maximum.map((high, f) => high - minimum[f]!);
    return placed(matrixOf(stream.uniform(rows * width), width), span, minimum);
  }
  const pooled = momentsOf(context, table);
  switch (params.anchors) {
    case "rotated": {
      const drawn = matrixOf(stream.uniform(rows * width), width);
      const standard = drawn.sub(0.5).div(UNIFORM_SPREAD);
      const rotated = standard.mmul(drawRotation(stream, width));
      return placed(rotated, equalSpread(params, pooled), pooled.mean);
    }
    case "gaussian": {
      const drawn = drawOrthogonalColumns(stream, rows, width).mul(Math.sqrt(rows));
      return placed(drawn, equalSpread(params, pooled), pooled.mean);
    }
  }
}

/** The spreads of anchors, which are equal in the units of the private maps. */
function equalSpread({ scaling }: DcParams, pooled: Moments): readonly number[] {
  const spread = spreadOf(pooled);
  if (scaling === "shared" || scaling === "local") return spread;
  const mean = Math.sqrt(sumOf(spread.map(squared)) / spread.length);
  return spread.map(() => mean);
}

function countAnchors(agreement: Agreement, params: DcParams): number {
  const { anchors, anchorRows, target } = params;
  const features = sumOf(widthsOf(agreement));
  const areOrthogonal = anchors === "gaussian" && target === "isometric";
  const least = areOrthogonal ? features + 1 : 2 * features; // fewer determine no map
  const rows = anchorRows ?? Math.max(LEAST_ANCHORS, least);
  return rows >= least
    ? rows
    : refuse("protocol-failed", `${features} features need more anchors than ${rows}.`);
}

/** How many columns each column group has. */
function widthsOf({ roster, terms }: Agreement): number[] {
  return audiences(terms, "column").map(
    ([first]) => roster.find(({ slot }) => slot === first)!.n_columns,
  );
}

function placed(
  drawn: Matrix,
  spread: readonly number[],
  middle: readonly number[],
): Matrix {
  return drawn.mulRowVector([...spread]).addRowVector([...middle]);
}
