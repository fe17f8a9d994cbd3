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
import { describeRows, mergeClusters, type Clusters } from "./start-clusters.ts";

const PROPOSED_BY_ALL = "proposed-by-all";
const LARGEST = 1e100;
const PROPOSED: StartProposed = { kind: "proposed" };
const SETTLED: StartSettled = { kind: "settled" };
const CONFIRMED: StartConfirmed = { kind: "confirmed" };

export function startStage(params: LlfParams): Stage {
  return {
    name: "start",
    exchanges: [
      { task: "propose", answer: "proposed" },
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
      return settle(context, params);
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
  const scaler = Scaler.of(context);
  checkRows(params, table);
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

function settle(context: PartyContext, params: LlfParams): Reply {
  const [leader, ...others] = context.slots;
  if (context.slot !== leader) return { contribution: SETTLED };
  const proposed = context.recall<readonly Clusters[]>(PROPOSED_BY_ALL);
  const rows = context.slots.map((slot) => context.rowsOf(slot));
  const stream = context.lastingStream("merge");
  const start = mergeClusters(proposed, rows, params.clusters, stream);
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
    const read = checked(context, params, pointsOf(centroids));
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
    return refuse("envelope-refused", "The leader sends the start, nothing else.");
  }
  const { centroids } = content as StartStartCentroids;
  return { [START]: checked(context, params, pointsOf(centroids)) };
}

function checked(context: PartyContext, params: LlfParams, points: Points): Points {
  const width = widthOf(context);
  if (
    points.length !== params.clusters ||
    points.some(({ length }) => length !== width)
  ) {
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
