/**
 * The party of `dc`: own rows and shared anchors under a private map, labels back.
 *
 * The self-check of the package, which tries to rebuild rows from what is sent, is not
 * done here.
 */

import { Matrix } from "ml-matrix";
import { readAlignment } from "../../alignment/params.ts";
import {
  MESSAGES,
  VERSION,
  type UploadProjections,
  type UploadRowGroupLabels,
} from "../../generated/dc.ts";
import type { Terms } from "../../roster/terms.ts";
import type { Role, Stage } from "../../session/contract.ts";
import type { Protocol } from "../../session/engine.ts";
import { alignmentStage } from "../../stages/alignment.ts";
import { inOwnOrder } from "../../stages/digests.ts";
import { poolingStages } from "../../stages/pooling.ts";
import { SECRETS } from "../../stages/secrets.ts";
import { floats, numbers } from "../../wire/arrays.ts";
import { drawAnchors } from "./anchors.ts";
import { checkRoster, pooledBy, readParams, type DcParams } from "./params.ts";
import { applyMap, fitMap } from "./private-map.ts";

export function dc(terms: Terms): Protocol {
  const params = readParams(terms);
  const alignment = readAlignment(terms);
  return {
    version: VERSION,
    messages: MESSAGES,
    alignment,
    stages(agreement, slot) {
      checkRoster(params, agreement);
      return [
        SECRETS,
        alignmentStage(alignment, agreement, slot),
        ...poolingStages(pooledBy(params), agreement, slot),
        uploadStage(params),
      ];
    },
  };
}

const projectorOf = (params: DcParams): Role => ({
  reply(context, _, table) {
    const map = fitMap(context, params, table);
    const order = context.recall<readonly number[]>("order");
    const travelling = order.map((row) => [...table.rows[row]!]);
    const contribution: UploadProjections = {
      kind: "projections",
      rows: written(applyMap(map, new Matrix(travelling))),
      anchors: written(applyMap(map, drawAnchors(context, params, table))),
    };
    return { contribution };
  },
  conclude(context, result) {
    const order = context.recall<readonly number[]>("order");
    const labels = numbers((result as UploadRowGroupLabels).labels);
    return { labels: inOwnOrder(order, labels) };
  },
});

function uploadStage(params: DcParams): Stage {
  return {
    name: "upload",
    exchanges: [{ task: "project", answer: "projections" }],
    results: ["row-group-labels"],
    resultsTo: "row",
    role: projectorOf(params),
  };
}

function written(matrix: Matrix) {
  return floats(matrix.to1DArray(), [matrix.rows, matrix.columns]);
}
