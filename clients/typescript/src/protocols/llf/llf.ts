/**
 * The party of `llf` (lossless federated c-means).
 *
 * Spoken are c-means, standard scaling, and the starts `careful` and `given`.
 */

import { MESSAGES, VERSION } from "../../generated/llf.ts";
import { readAlignment } from "../../alignment/params.ts";
import { audiences, type Terms } from "../../roster/terms.ts";
import type { Agreement } from "../../roster/roster.ts";
import type { Stage } from "../../session/contract.ts";
import type { Protocol } from "../../session/engine.ts";
import { alignmentStage } from "../../stages/alignment.ts";
import { poolingStages } from "../../stages/pooling.ts";
import { SECRETS } from "../../stages/secrets.ts";
import { columnUpdatesStage } from "./columns/party.ts";
import { columnStartStage } from "./columns/start.ts";
import { readParams, type LlfParams } from "./params.ts";
import { updatesStage } from "./rows/party.ts";
import { startStage } from "./rows/start.ts";

export function llf(terms: Terms): Protocol {
  const params = readParams(terms);
  const alignment = readAlignment(terms);
  return {
    version: VERSION,
    messages: MESSAGES,
    alignment,
    stages: (agreement, slot) => [
      SECRETS,
      alignmentStage(alignment, agreement, slot),
      ...poolingStages(agreement, slot, { moments: true, ranges: false }),
      ...runStages(params, agreement),
    ],
  };
}

function runStages(params: LlfParams, { terms }: Agreement): readonly Stage[] {
  const areRowsSplit = audiences(terms, "column").length === 1;
  const [start, updates] = areRowsSplit
    ? [startStage(params), updatesStage(params)]
    : [columnStartStage(params), columnUpdatesStage(params)];
  return params.init === "careful" ? [start, updates] : [updates];
}
