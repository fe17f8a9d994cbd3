/**
 * The party of `llf` (lossless federated c-means).
 *
 * The start `random_rows` and memberships are not supported.
 */

import { MESSAGES, VERSION } from "../../generated/llf.ts";
import { readAlignment } from "../../alignment/params.ts";
import { audiences, type Terms } from "../../roster/terms.ts";
import type { Agreement } from "../../roster/roster.ts";
import type { Stage } from "../../session/contract.ts";
import { inRuns } from "../../session/runs.ts";
import type { Protocol } from "../../session/engine.ts";
import { alignmentStage } from "../../stages/alignment.ts";
import { poolingStages, type Pooled } from "../../stages/pooling.ts";
import { SECRETS } from "../../stages/secrets.ts";
import { columnUpdatesStage } from "./columns/party.ts";
import { columnStartStage } from "./columns/start.ts";
import { isFromParties, readGiven, settle, type LlfParams } from "./params.ts";
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
      ...poolingStages(pooledBy(given), agreement, slot),
      ...inRuns(settle(given, agreement).map((run) => runStages(run, agreement))),
    ],
  };
}

function pooledBy({ scaling = "standard" }: ReturnType<typeof readGiven>): Pooled {
  return { moments: scaling === "standard", ranges: false };
}

function runStages(params: LlfParams, agreement: Agreement): readonly Stage[] {
  const areRowsSplit = audiences(agreement.terms, "column").length === 1;
  if (areRowsSplit) checkCohorts(params, agreement);
  const [start, updates] = areRowsSplit
    ? [startStage(params), updatesStage(params)]
    : [columnStartStage(params), columnUpdatesStage(params)];
  return [...(isFromParties(params) ? [start] : []), updates];
}
