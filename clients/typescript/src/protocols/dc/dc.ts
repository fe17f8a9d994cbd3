/**
 * The party of `dc`: own rows and shared anchors under a private map, labels back.
 *
 * Spoken are shared scaling, gaussian anchors, principal axes and labels. The self-check
 * of the package, which tries to rebuild rows from what is sent, is not done here.
 */

import { Matrix } from "ml-matrix";
import {
  MESSAGES,
  VERSION,
  type UploadProjections,
  type UploadRowGroupLabels,
} from "../../generated/dc.ts";
import { matrixOf } from "../../numerics/linear-algebra.ts";
import type { Agreement } from "../../roster/roster.ts";
import { audiences, type Terms } from "../../roster/terms.ts";
import type { PartyContext, Role } from "../../session/contract.ts";
import type { Protocol } from "../../session/engine.ts";
import { readAlignment } from "../../alignment/params.ts";
import { alignmentStage, inOwnOrder } from "../../stages/alignment.ts";
import { POOLED, spreadOf, sumOf, type Moments } from "../../stages/pooled.ts";
import { poolingStages } from "../../stages/pooling.ts";
import { groupStream, SECRETS } from "../../stages/secrets.ts";
import { floats, numbers } from "../../wire/arrays.ts";
import { checkParams } from "../params.ts";
import { applyMap, fitMap } from "./private-map.ts";

const SPOKEN = {
  n_clusters: "any",
  n_init: "any",
  max_iter: "any",
  alignment: "any",
  map: "any", // what the analyst makes of what it gets
  target: "any",
  algorithm: "any",
  scaling: ["shared"],
  dimensions: ["all_but_one"],
  reduction: ["pca"],
  output: ["labels"],
} as const;
const LEAST_ANCHORS = 500;
const ANCHORS_PER_FEATURE = 5;

export function dc(terms: Terms): Protocol {
  checkParams(terms, SPOKEN);
  const alignment = readAlignment(terms);
  return {
    version: VERSION,
    messages: MESSAGES,
    alignment,
    stages: (agreement, slot) => [
      SECRETS,
      alignmentStage(alignment),
      ...poolingStages(agreement, slot),
      UPLOAD,
    ],
  };
}

const projector: Role = {
  reply(context, _, table) {
    const pooled = context.recall<Moments>(POOLED);
    const map = fitMap(table, pooled, context.lastingStream("rotation"));
    const order = context.recall<readonly number[]>("order");
    const travelling = order.map((row) => [...table.rows[row]!]);
    const contribution: UploadProjections = {
      kind: "projections",
      rows: written(applyMap(map, new Matrix(travelling))),
      anchors: written(applyMap(map, drawAnchors(context, pooled))),
    };
    return { contribution };
  },
  conclude(context, result) {
    const order = context.recall<readonly number[]>("order");
    const labels = numbers((result as UploadRowGroupLabels).labels);
    return { labels: inOwnOrder(order, labels) };
  },
};

const UPLOAD = {
  name: "upload",
  exchanges: [{ task: "project", answer: "projections" }],
  results: ["row-group-labels"],
  resultsTo: "row" as const,
  role: projector,
};

/** Normal rows with the pooled mean and spread, which the column group draws alike. */
function drawAnchors(context: PartyContext, pooled: Moments): Matrix {
  const features = sumOf(widths(context.agreement));
  const rows = Math.max(LEAST_ANCHORS, ANCHORS_PER_FEATURE * features);
  const width = pooled.mean.length;
  const stream = groupStream(context, "column", "anchors");
  const drawn = matrixOf(stream.normal(rows * width), width);
  return drawn.mulRowVector([...spreadOf(pooled)]).addRowVector([...pooled.mean]);
}

function widths({ roster, terms }: Agreement): number[] {
  return audiences(terms, "column").map(
    ([first]) => roster.find(({ slot }) => slot === first)!.n_columns,
  );
}

function written(matrix: Matrix) {
  return floats(matrix.to1DArray(), [matrix.rows, matrix.columns]);
}
