/**
 * Stage: a start that comes from rows of all parties.
 *
 * Each party seals the rounded centroids of its own k-means to the first slot, which
 * merges them by how many rows they stand for, and seals the start to all.
 */

import type {
  StartCandidates,
  StartConfirmed,
  StartProposed,
  StartSettled,
  StartStartCentroids,
} from "../../../generated/llf.ts";
import { pointsArray, pointsOf, type Points } from "../../../numerics/points.ts";
import type {
  PartyContext,
  PeerMessage,
  Reply,
  Role,
  Stage,
  Table,
} from "../../../session/contract.ts";
import { ints, numbers } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { checkRows, type LlfParams } from "../params.ts";
import { Scaler, START } from "../scaler.ts";
import {
  DESCRIBED,
  LEAST_ROWS,
  describeRows,
  drawMeans,
  mergeClusters,
  type Clusters,
} from "./start-clusters.ts";

const PROPOSED_BY_ALL = "proposed-by-all";
const LARGEST = 1e100;
const PROPOSED: StartProposed = { kind: "proposed" };
const SETTLED: StartSettled = { kind: "settled" };
const CONFIRMED: StartConfirmed = { kind: "confirmed" };

export function startStage(params: LlfParams): Stage {
  return {
    name: "start",
    exchanges: [
      ...(params.init === "careful" ? [{ task: "propose", answer: "proposed" }] : []),
      { task: "settle", answer: "settled" },
      { task: "confirm", answer: "confirmed" },
    ],
    envelopes: ["candidates", "start-centroids"],
    role: startRole(params),
  };
}

function startRole(params: LlfParams): Role {
  return {
    reply(context, task, table): Reply {
      if (task.kind === "propose") return propose(context, params, table);
      if (task.kind === "confirm") return { contribution: CONFIRMED };
      return settle(context, params, table);
    },
    receive(context, envelopes) {
      const [leader, ...others] = context.slots;
      return context.slot === leader
        ? collect(context, params, others, envelopes)
        : keep(context, params, leader!, envelopes);
    },
  };
}

function propose(context: PartyContext, params: LlfParams, table: Table): Reply {
  const scaler = Scaler.of(context, params);
  const rows = table.rows.map((row) => scaler.scaled(row));
  const own = describeRows(rows, params.clusters, context.lastingStream("candidates"));
  const [leader] = context.slots;
  if (context.slot === leader) {
    return { contribution: PROPOSED, remember: { [PROPOSED_BY_ALL]: [own] } };
  }
  const content: StartCandidates = {
    kind: "candidates",
    centroids: pointsArray(own.centroids, scaler.width),
    sizes: ints(own.sizes),
  };
  return { contribution: PROPOSED, envelopes: [{ peer: leader!, content }] };
}

function settle(context: PartyContext, params: LlfParams, table: Table): Reply {
  const [leader, ...others] = context.slots;
  if (context.slot !== leader) return { contribution: SETTLED };
  const start =
    params.init === "careful"
      ? mergedStart(context, params)
      : drawnStart(context, params, table);
  const content: StartStartCentroids = {
    kind: "start-centroids",
    centroids: pointsArray(start, widthOf(context)),
  };
  return {
    contribution: SETTLED,
    envelopes: others.map((peer) => ({ peer, content })),
    remember: { [START]: start },
  };
}

/** Means of some of the leader's own rows and of those next to them. */
function drawnStart(context: PartyContext, params: LlfParams, table: Table): Points {
  const scaler = Scaler.of(context, params);
  checkRows(params, table);
  if (table.rows.length < LEAST_ROWS) {
    refuse("invalid-data", `A start from own rows needs ${LEAST_ROWS} of them.`);
  }
  const rows = table.rows.map((row) => scaler.scaled(row));
  return drawMeans(rows, params.clusters, context.lastingStream("start"));
}

function mergedStart(context: PartyContext, { clusters }: LlfParams): Points {
  const proposed = context.recall<readonly Clusters[]>(PROPOSED_BY_ALL);
  const rows = context.slots.map((slot) => context.rowsOf(slot));
  return mergeClusters(proposed, rows, clusters, context.lastingStream("merge"));
}

function collect(
  context: PartyContext,
  params: LlfParams,
  others: readonly string[],
  envelopes: readonly PeerMessage[],
): Readonly<Record<string, unknown>> {
  const found = others.map((slot) => {
    const content = envelopes.find(({ peer }) => peer === slot)?.content;
    if (content?.kind !== "candidates") {
      return refuse("protocol-failed", "The candidates of a party are missing.");
    }
    const { centroids, sizes } = content as StartCandidates;
    const read = checked(context, pointsOf(centroids), DESCRIBED * params.clusters);
    return { centroids: read, sizes: numbers(sizes) };
  });
  const [own] = context.recall<readonly Clusters[]>(PROPOSED_BY_ALL);
  return { [PROPOSED_BY_ALL]: [own, ...found] };
}

function keep(
  context: PartyContext,
  params: LlfParams,
  leader: string,
  envelopes: readonly PeerMessage[],
): Readonly<Record<string, unknown>> {
  const content = envelopes.find(({ peer }) => peer === leader)?.content;
  if (content?.kind !== "start-centroids") {
    return refuse("envelope-refused", "The leader may send only the start.");
  }
  const { centroids } = content as StartStartCentroids;
  return { [START]: checked(context, pointsOf(centroids), params.clusters) };
}

function checked(context: PartyContext, points: Points, expected: number): Points {
  const width = widthOf(context);
  if (points.length !== expected || points.some(({ length }) => length !== width)) {
    refuse("invalid-array", "A start has other clusters or columns than the session.");
  }
  if (points.some((point) => point.some((x) => Math.abs(x) > LARGEST))) {
    refuse("invalid-array", `A start has numbers larger than ${LARGEST}.`);
  }
  return points;
}

function widthOf(context: PartyContext): number {
  return context.member(context.slot).n_columns;
}
