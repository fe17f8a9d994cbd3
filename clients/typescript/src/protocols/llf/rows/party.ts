/** The party of split rows: its sums around the centroids, then the result. */

import type {
  UpdatesClose,
  UpdatesClosed,
  UpdatesClosing,
  UpdatesGather,
  UpdatesGathered,
  UpdatesSums,
  UpdatesTell,
  UpdatesTold,
  UpdatesUpdate,
} from "../../../generated/llf.ts";
import { pointsArray } from "../../../numerics/points.ts";
import type { Outcome, Reply, Role, Stage, Table } from "../../../session/contract.ts";
import { groupDigestOfBytes } from "../../../stages/secrets.ts";
import { ints } from "../../../wire/arrays.ts";
import { concat } from "../../../wire/bytes.ts";
import { refuse } from "../../../wire/problems.ts";
import type { LlfParams } from "../params.ts";
import { digestOf, isAtRest } from "../centroids.ts";
import { figuresOf } from "./figures.ts";
import {
  KNOWN,
  LABELS,
  OWN_SHARE,
  RowsRound,
  type FinalMeans,
  type Known,
} from "./following.ts";
import { labelRows, sumAround, sumLabelled, sumNearest } from "./passes.ts";
import { orderClusters, publish } from "./publication.ts";

type Asked = UpdatesUpdate | UpdatesClose | UpdatesGather | UpdatesTell;

const MEANS = "final-means";
const OWN_FIELDS = ["updates", "cohorts", "totals"]; // who was late lacks more of them

export function updatesStage(params: LlfParams): Stage {
  const own = OWN_FIELDS;
  return {
    name: "updates",
    exchanges: [
      { task: "update", answer: "sums", most: params.maxIterations, own },
      { task: "close", answer: "closing", own },
      { task: "gather", answer: "gathered", own },
      { task: "tell", answer: "told", own },
    ],
    results: ["closed"],
    role: rowsRole(params),
  };
}

function rowsRole(params: LlfParams): Role {
  return {
    reply(context, task, table): Reply {
      const here = new RowsRound(context, params);
      const asked = task as Asked;
      if (asked.members.join() !== context.slots.join()) {
        refuse("protocol-failed", "The analyst names other members than the terms.");
      }
      switch (asked.kind) {
        case "update":
          return update(here, asked, table);
        case "close":
          return close(here, asked, table);
        case "gather":
          return gather(here, asked, table);
        case "tell":
          return tell(here, asked);
      }
    },
    conclude(context, result): Outcome {
      const here = new RowsRound(context, params);
      const known = here.followToTheEnd(result as UpdatesClosed);
      const labels = context.recall<readonly number[]>(LABELS);
      return { labels: numbered(here, known, labels) };
    },
  };
}

function update(here: RowsRound, asked: UpdatesUpdate, table: Table): Reply {
  const known = here.follow(asked);
  const { number } = asked;
  if (number !== known.number + 1 || number !== here.ownShare.asked + 1) {
    refuse("protocol-failed", "The analyst asks for an update out of order.");
  }
  const rows = here.scaledRows(table.rows);
  const sums = sumNearest(rows, known.centroids, here.updates.units);
  const contribution: UpdatesSums = {
    kind: "sums",
    ...here.share(here.updates.encode(sums), `update/${number}`),
    start: pointsArray([], here.scaler.width),
    moved: here.leads ? twoDigits(known.moved) : null,
    stop: here.leads && isAtRest(here.params, known.moved),
  };
  const own = { asked: number, counts: sums.counts };
  return { contribution, remember: { [KNOWN]: known, [OWN_SHARE]: own } };
}

function close(here: RowsRound, asked: UpdatesClose, table: Table): Reply {
  const known = here.followToTheEnd(asked);
  const rows = here.scaledRows(table.rows);
  const labels = labelRows(rows, known.centroids);
  const { units } = here.labels;
  const own = here.labels.encode(
    sumLabelled(rows, labels, here.params.clusters, units),
  );
  const contribution: UpdatesClosing = {
    kind: "closing",
    ...here.share(own, `closing/${known.number}`),
  };
  return { contribution, remember: { [KNOWN]: known, [LABELS]: labels } };
}

function gather(here: RowsRound, asked: UpdatesGather, table: Table): Reply {
  const known = here.followToTheEnd(asked);
  const final = here.means(known, asked);
  const labels = here.context.recall<readonly number[]>(LABELS);
  const rows = here.scaledRows(table.rows);
  const around = sumAround(rows, labels, final.means, final.counts);
  const contribution: UpdatesGathered = {
    kind: "gathered",
    ...here.share(
      here.aroundEncoding(final.means).encode(around),
      `gathered/${known.number}`,
    ),
  };
  return { contribution, remember: { [MEANS]: final } };
}

function tell(here: RowsRound, asked: UpdatesTell): Reply {
  const { context, params, scaler, leads } = here;
  const known = here.followToTheEnd(asked);
  const final = context.recall<FinalMeans>(MEANS);
  const around = here.around(known, final, asked);
  const shown = publish(params, scaler, known, final);
  const told = leads
    ? shown
    : { clusters: [], centroids: [], sizes: [], coinciding: null };
  const converged = isAtRest(params, known.moved);
  const contribution: UpdatesTold = {
    kind: "told",
    clusters: ints(told.clusters),
    centroids: pointsArray(told.centroids, scaler.width),
    sizes: ints(told.sizes),
    n_updates: known.number,
    n_coinciding: told.coinciding,
    digest: markOf(here, known, around.sizes),
    figures:
      leads && params.publish !== "nothing"
        ? figuresOf(around, final.means, known.number, converged)
        : null,
  };
  return { contribution };
}

/** A mark over all bits of the result, which all parties say alike. */
function markOf(here: RowsRound, known: Known, sizes: readonly number[]): string {
  const { data } = ints(sizes);
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const result = concat(digestOf(known.centroids, known.number), bits);
  return groupDigestOfBytes(here.context, "column", "told", result);
}

/** Labels by the numbers that clusters have outside; given starts keep theirs. */
function numbered(
  here: RowsRound,
  known: Known,
  labels: readonly number[],
): readonly number[] {
  const { context, params, scaler } = here;
  if (params.init === "given") return labels;
  const final = context.recall<FinalMeans>(MEANS);
  const published = publish(params, scaler, known, final);
  const order = orderClusters(params, known, final, published);
  return labels.map((label) => order.indexOf(label));
}

function twoDigits(moved: number | null): number | null {
  return moved === null ? null : Number(moved.toPrecision(2));
}
