/** The party of split columns: distances out, clusters in; centroids stay at home. */

import type {
  ClosingGrouped,
  UpdatesDistances,
  UpdatesMeasure,
  UpdatesScatter,
  UpdatesScattered,
} from "../../../generated/llf.ts";
import { equaliseCoordinates } from "../../../numerics/coincidence.ts";
import { pointsOf, squaredDistance, type Points } from "../../../numerics/points.ts";
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
import { numbers, words, type Ints } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { move, nudgeOf } from "../centroids.ts";
import { sumByLabel, sumByWeight } from "../cluster-sums.ts";
import { orderBySize } from "../cluster-order.ts";
import { isFuzzy, type LlfParams } from "../params.ts";
import { rememberedScale, Scaler, startOf } from "../scaler.ts";
import { hiddenDistances, limitsOfAll } from "./distances.ts";
import { travellingRows } from "./start.ts";

interface OwnCentroids {
  readonly number: number;
  readonly centroids: Points;
}

const OWN = "own-centroids";
const LABELS = "final-labels";

export function columnUpdatesStage(params: LlfParams): Stage {
  const most = params.maxIterations + 1;
  const scatter = { task: "scatter", answer: "scattered" };
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
      const { labels, cluster_sizes } = result as ClosingGrouped;
      const found = numbers(labels);
      const announced = context.memory.get(LABELS) as readonly number[] | undefined;
      if (announced && announced.join() !== found.join()) {
        refuse(
          "protocol-failed",
          "The analyst returns labels that differ from those it announced.",
        );
      }
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
  const rows = travellingRows(context, params, table);
  const degrees = degreesIn(asked, params, before ? table.rows.length : 0);
  const centroids = before
    ? moved(context, params, before, table, degrees)
    : startAt(startOf(context, params, table), Scaler.of(context, params, table));
  const contribution: UpdatesDistances = {
    kind: "distances",
    words: hiddenDistances(
      ...([context, params, rows, centroids, "distances"] as const),
      !isFuzzy(params), // degrees follow from distances themselves
    ),
  };
  const own: OwnCentroids = { number, centroids };
  const scale = before ? {} : rememberedScale(context, params, table);
  return { contribution, remember: { ...scale, [OWN]: own } };
}

/** The weight of each row in each cluster, in the order in which rows are sent. */
function degreesIn(
  { labels, memberships }: UpdatesMeasure,
  { clusters, fuzzifier }: LlfParams,
  size: number,
): Points {
  if (fuzzifier !== undefined) {
    const given = pointsOf(memberships);
    if (given.length !== size || given.some(({ length }) => length !== clusters)) {
      refuse("invalid-array", "The analyst reports degrees of other rows or clusters.");
    }
    return given.map((row) => row.map((degree) => degree ** fuzzifier));
  }
  return readLabels(labels, clusters, size).map((label) => {
    const row = new Float64Array(clusters);
    row[label] = 1;
    return row;
  });
}

function readLabels(labels: Ints, clusters: number, size: number): readonly number[] {
  const told = numbers(labels);
  if (told.length !== size) {
    refuse("invalid-array", "The analyst labels other rows than this party has.");
  }
  if (told.some((label) => label >= clusters)) {
    refuse("protocol-failed", "The analyst named a cluster that does not exist.");
  }
  return told;
}

function startAt(points: Points, { steps }: Scaler): Points {
  return equaliseCoordinates(points, steps);
}

function moved(
  context: PartyContext,
  params: LlfParams,
  before: OwnCentroids,
  table: Table,
  degrees: Points,
): Points {
  // a public step would give the analyst known directions to measure rows by
  const purpose = `nudge/${context.place.column}/${before.number}`;
  const stream = groupStream(context, "row", purpose);
  const { steps } = Scaler.of(context, params, table);
  const nudges = before.centroids.map(() => nudgeOf(stream, steps));
  const { rows, told } = ownRows(context, params, table, degrees);
  const sums = sumByWeight(rows, told, before.centroids.length);
  return move(before.centroids, sums, nudges, steps, 1).centroids;
}

/** Squares within clusters and between them, over own columns, masked. */
function scatter(
  context: PartyContext,
  params: LlfParams,
  asked: UpdatesScatter,
  table: Table,
): Reply {
  const announced = readLabels(asked.labels, params.clusters, table.rows.length);
  const { rows, told: labels } = ownRows(context, params, table, announced);
  const { sums, counts } = sumByLabel(rows, labels, params.clusters);
  const means = sums.map((sum, c) => sum.map((x) => x / Math.max(counts[c]!, 1)));
  const middle = sums[0]!.map(
    (_, f) => sumOf(sums.map((sum) => sum[f]!)) / rows.length,
  );
  const within = rows.map((row, place) => squaredDistance(row, means[labels[place]!]!));
  const between = means.map((mean, c) => counts[c]! * squaredDistance(mean, middle));
  const limit = sumOf(limitsOfAll(context, params).map(({ squares }) => squares));
  const encoding = new FixedPoint([limit, limit]);
  const hidden = encoding.encode([sumOf(within), sumOf(between)]);
  const { slots, transcript } = context;
  const sum = { members: slots, name: "scatter", transcript };
  mask(hidden, sum, sumMember(context, "row"), params.leastParties);
  const contribution: UpdatesScattered = { kind: "scattered", words: words(hidden) };
  return { contribution, remember: { [LABELS]: announced } };
}

/** Scaled rows, and the label of each, in the order of the party's table. */
function ownRows<T>(
  context: PartyContext,
  params: LlfParams,
  table: Table,
  told: readonly T[],
) {
  const scaler = Scaler.of(context, params, table);
  const order = context.recall<readonly number[]>("order");
  const rows = table.rows.map((row) => scaler.scaled(row));
  return { rows, told: inOwnOrder(order, told) };
}
