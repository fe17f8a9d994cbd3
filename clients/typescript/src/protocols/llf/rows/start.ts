/**
 * Stage: a start that comes from rows of all parties.
 *
 * Each party seals the rounded centroids of its own k-means to the first slot, which
 * merges them by how many rows they stand for, and seals the start to all.
 */

import type {
  StartCandidates,
  StartConfirmed,
  StartLaneStarts,
  StartProposed,
  StartSettled,
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
    envelopes: ["candidates", "lane-starts"],
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
  const found = streamsOf(context, params, "candidates").map((stream) =>
    describeRows(rows, params.clusters, stream),
  );
  const own: Clusters = {
    centroids: found.flatMap(({ centroids }) => centroids),
    sizes: found.flatMap(({ sizes }) => sizes),
  };
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
  const lanes =
    params.init === "careful"
      ? mergedLanes(context, params)
      : drawnLanes(context, params, table);
  const width = widthOf(context);
  const content: StartLaneStarts = {
    kind: "lane-starts",
    centroids: {
      ...pointsArray(lanes.flat(), width),
      shape: [params.starts, params.clusters, width],
    },
  };
  return {
    contribution: SETTLED,
    envelopes: others.map((peer) => ({ peer, content })),
    remember: { [START]: lanes },
  };
}

/** Means of some of the leader's own rows and of those next to them. */
function drawnLanes(
  context: PartyContext,
  params: LlfParams,
  table: Table,
): readonly Points[] {
  const scaler = Scaler.of(context, params);
  checkRows(params, table);
  if (table.rows.length < LEAST_ROWS) {
    refuse("invalid-data", `A start from own rows needs ${LEAST_ROWS} of them.`);
  }
  const rows = table.rows.map((row) => scaler.scaled(row));
  return streamsOf(context, params, "start").map((stream) =>
    drawMeans(rows, params.clusters, stream),
  );
}

function mergedLanes(context: PartyContext, params: LlfParams): readonly Points[] {
  const proposed = context.recall<readonly Clusters[]>(PROPOSED_BY_ALL);
  const rows = context.slots.map((slot) => context.rowsOf(slot));
  const { clusters } = params;
  return streamsOf(context, params, "merge").map((stream, lane) => {
    const [from, to] = [lane * DESCRIBED * clusters, (lane + 1) * DESCRIBED * clusters];
    const ofLane = proposed.map(({ centroids, sizes }) => ({
      centroids: centroids.slice(from, to),
      sizes: sizes.slice(from, to),
    }));
    return mergeClusters(ofLane, rows, clusters, stream);
  });
}

/** A stream for each start that races; the first as if it were alone. */
function streamsOf(context: PartyContext, { starts }: LlfParams, purpose: string) {
  return Array.from({ length: starts }, (_, lane) =>
    context.lastingStream(lane ? `${purpose}/${lane}` : purpose),
  );
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
    const expected = params.starts * DESCRIBED * params.clusters;
    const read = checked(context, pointsOf(centroids), expected);
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
  const { starts, clusters } = params;
  const content = envelopes.find(({ peer }) => peer === leader)?.content;
  if (content?.kind !== "lane-starts") {
    return refuse("envelope-refused", "The leader may send only the start.");
  }
  const { data, shape } = (content as StartLaneStarts).centroids;
  if (shape[0] !== starts || shape[1] !== clusters) {
    refuse(
      "invalid-array",
      "The number of starts or of clusters differs from the terms.",
    );
  }
  const flat = pointsOf({ data, shape: [starts * clusters, shape.at(-1)!] });
  const points = checked(context, flat, starts * clusters);
  const lanes = Array.from({ length: starts }, (_, lane) =>
    points.slice(lane * clusters, (lane + 1) * clusters),
  );
  return { [START]: lanes };
}

function checked(context: PartyContext, points: Points, expected: number): Points {
  const width = widthOf(context);
  if (points.length !== expected || points.some(({ length }) => length !== width)) {
    refuse("invalid-array", "A start has other clusters or columns than the session.");
  }
  if (points.some((point) => point.some((x) => Math.abs(x) > LARGEST))) {
    refuse("invalid-array", `A start holds numbers larger than ${LARGEST}.`);
  }
  return points;
}

function widthOf(context: PartyContext): number {
  return context.member(context.slot).n_columns;
}
