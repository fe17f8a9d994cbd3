/** The party of split columns: distances out, clusters in; centroids stay at home. */

import type {
  ClosingGrouped,
  UpdatesDistances,
  UpdatesMeasure,
  UpdatesScatter,
  UpdatesScattered,
} from "../../../generated/llf.ts";
import { equaliseCoordinates } from "../../../numerics/coincidence.ts";
import { squaredDistance, type Points } from "../../../numerics/points.ts";
import { FixedPoint } from "../../../secrecy/fixed-point.ts";
import { mask } from "../../../secrecy/sums.ts";
import type {
  Outcome,
  PartyContext,
  Reply,
  Role,
  Stage,
  Table,
} from "../../../session/contract.ts";
import { inOwnOrder } from "../../../stages/digests.ts";
import { sumOf } from "../../../stages/pooled.ts";
import { groupStream, sumMember } from "../../../stages/secrets.ts";
import { numbers, words } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { move, nudgeOf, unitsOfOne } from "../centroids.ts";
import { sumByLabel } from "../cluster-sums.ts";
import { orderBySize } from "../cluster-order.ts";
import type { LlfParams } from "../params.ts";
import { largestSum, Scaler, startOf } from "../scaler.ts";
import { columnsOf, hiddenDistances } from "./distances.ts";
import { travellingRows } from "./start.ts";

interface OwnCentroids {
  readonly number: number;
  readonly centroids: Points;
}

const OWN = "own-centroids";
const TOLD = "labels-told";

export function columnUpdatesStage(params: LlfParams): Stage {
  const most = params.maxIterations + 1;
  const scatter = { task: "scatter", answer: "scattered", least: 0 };
  return {
    name: "updates",
    exchanges: [
      { task: "measure", answer: "distances", most },
      ...(params.publish === "nothing" ? [] : [scatter]),
    ],
    results: ["grouped"],
    role: columnsRole(params),
  };
}

function columnsRole(params: LlfParams): Role {
  return {
    reply: (context, task, table) =>
      task.kind === "scatter"
        ? scatter(context, params, task as UpdatesScatter, table)
        : measure(context, params, task as UpdatesMeasure, table),
    conclude(context, result): Outcome {
      const { labels, cluster_sizes, figures } = result as ClosingGrouped;
      const found = numbers(labels);
      if (figures.inertia !== null) checkTold(context, found);
      const own = inOwnOrder(context.recall<readonly number[]>("order"), found);
      if (params.init === "given") return { labels: own };
      const order = orderBySize(numbers(cluster_sizes), []);
      return { labels: own.map((label) => order.indexOf(label)) };
    },
  };
}

function measure(
  context: PartyContext,
  params: LlfParams,
  asked: UpdatesMeasure,
  table: Table,
): Reply {
  const before = context.memory.get(OWN) as OwnCentroids | undefined;
  const { number } = asked;
  if (number !== (before ? before.number + 1 : 1)) {
    refuse("protocol-failed", "The analyst asks for an update out of order.");
  }
  const rows = travellingRows(context, table);
  const labels = numbers(asked.labels);
  const centroids = before
    ? moved(context, params, before, table, labels)
    : startAt(startOf(context, params));
  const contribution: UpdatesDistances = {
    kind: "distances",
    words: hiddenDistances(context, params, rows, centroids, "distances"),
  };
  const own: OwnCentroids = { number, centroids };
  return { contribution, remember: { [OWN]: own, [TOLD]: labels } };
}

function startAt(points: Points): Points {
  return equaliseCoordinates(points, unitsOfOne(points));
}

function moved(
  context: PartyContext,
  { clusters }: LlfParams,
  before: OwnCentroids,
  table: Table,
  labels: readonly number[],
): Points {
  checkLabels(labels, table.rows.length, clusters);
  // a public step would give the analyst known directions to measure rows by
  const purpose = `nudge/${context.place.column}/${before.number}`;
  const stream = groupStream(context, "row", purpose);
  const nudges = before.centroids.map(({ length }) => nudgeOf(stream, length));
  const { rows, labels: own } = ownRows(context, table, labels);
  return move(before.centroids, sumByLabel(rows, own, clusters), nudges, 1).centroids;
}

/** Squares within clusters and between them, over own columns, masked. */
function scatter(
  context: PartyContext,
  params: LlfParams,
  asked: UpdatesScatter,
  table: Table,
): Reply {
  const told = numbers(asked.labels);
  checkTold(context, told);
  const { rows, labels } = ownRows(context, table, told);
  const { sums, counts } = sumByLabel(rows, labels, params.clusters);
  const means = sums.map((sum, c) => sum.map((x) => x / Math.max(counts[c]!, 1)));
  const middle = sums[0]!.map(
    (_, f) => sumOf(sums.map((sum) => sum[f]!)) / rows.length,
  );
  const within = rows.map((row, place) => squaredDistance(row, means[labels[place]!]!));
  const between = means.map((mean, c) => counts[c]! * squaredDistance(mean, middle));
  const limit = columnsOf(context) * largestSum(rows.length);
  const encoding = new FixedPoint([limit, limit]);
  const hidden = encoding.encode([sumOf(within), sumOf(between)]);
  const { slots, transcript } = context;
  const sum = { members: slots, name: "scatter", transcript };
  mask(hidden, sum, sumMember(context, "row"), params.leastParties);
  const contribution: UpdatesScattered = { kind: "scattered", words: words(hidden) };
  return { contribution };
}

/** Scaled rows and their labels in the order of the party's table: sums are over it. */
function ownRows(context: PartyContext, table: Table, told: readonly number[]) {
  const scaler = Scaler.of(context);
  const order = context.recall<readonly number[]>("order");
  const rows = table.rows.map((row) => scaler.scaled(row));
  return { rows, labels: inOwnOrder(order, told) };
}

function checkLabels(labels: readonly number[], rows: number, clusters: number): void {
  if (labels.length !== rows) {
    refuse("invalid-array", "The analyst labels other rows than there are.");
  }
  if (labels.some((label) => label >= clusters)) {
    refuse("protocol-failed", "The analyst named a cluster that there is not.");
  }
}

/** Refuses labels other than those that were told last. */
function checkTold(context: PartyContext, labels: readonly number[]): void {
  if (context.recall<readonly number[]>(TOLD).join() !== labels.join()) {
    refuse("protocol-failed", "The analyst asks for figures of other labels.");
  }
}
