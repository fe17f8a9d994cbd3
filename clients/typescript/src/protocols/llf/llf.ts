/**
 * The party of `llf` (lossless federated c-means).
 *
 * Spoken are c-means and fuzzy c-means, standard scaling, and the starts `careful` and
 * `given`.
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
import { readGiven, settle, type LlfParams } from "./params.ts";
import { checkCohorts } from "./rows/cohorts.ts";
import { updatesStage } from "./rows/party.ts";
import { startStage } from "./rows/start.ts";

export function llf(terms: Terms): Protocol {
  const given = readGiven(terms);
  const alignment = readAlignment(terms);
  return {
    version: VERSION,
    messages: MESSAGES,
    alignment,
    ...(given.quorum ? { quorum: given.quorum } : {}),
    stages: (agreement, slot) => [
      SECRETS,
      alignmentStage(alignment, agreement, slot),
      ...poolingStages(agreement, slot, { moments: true, ranges: false }),
      ...runStages(settle(given, agreement), agreement),
    ],
  };
}

function runStages(params: LlfParams, agreement: Agreement): readonly Stage[] {
  const areRowsSplit = audiences(agreement.terms, "column").length === 1;
  if (areRowsSplit) checkCohorts(params, agreement);
  const [start, updates] = areRowsSplit
    ? [startStage(params), updatesStage(params)]
    : [columnStartStage(params), columnUpdatesStage(params)];
  return params.init === "careful" ? [start, updates] : [updates];
}
