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
import { pointsArray, type Points } from "../../../numerics/points.ts";
import { checkMembers } from "../../../secrecy/sums.ts";
import { FIGURES } from "../../../session/closing.ts";
import type { Outcome, Reply, Role, Stage, Table } from "../../../session/contract.ts";
import { groupDigestOfBytes } from "../../../stages/secrets.ts";
import { ints } from "../../../wire/arrays.ts";
import { concat } from "../../../wire/bytes.ts";
import { refuse } from "../../../wire/problems.ts";
import type { LlfParams } from "../params.ts";
import { digestOf, isAtRest } from "../centroids.ts";
import { audit, auditSums } from "./audit.ts";
import { figuresOf, rounded } from "./figures.ts";
import {
  KNOWN,
  LABELS,
  OWN_SHARE,
  MEANS,
  RowsRound,
  type Known,
  type OwnShare,
} from "./following.ts";
import { labelRows, sumAround, sumDegrees, sumLabelled, sumRows } from "./passes.ts";
import { orderClusters, publish } from "./publication.ts";

type Asked = UpdatesUpdate | UpdatesClose | UpdatesGather | UpdatesTell;

const SIZES = "final-sizes";
const OWN_FIELDS = ["updates", "cohorts", "totals"]; // who was late lacks more of them

export function updatesStage(params: LlfParams): Stage {
  const own = OWN_FIELDS;
  const mayBeLate = params.quorum !== undefined;
  const least = mayBeLate ? 0 : 1;
  return {
    name: "updates",
    exchanges: [
      { task: "update", answer: "sums", least, most: params.maxIterations, own },
      { task: "close", answer: "closing", least, own },
      { task: "gather", answer: "gathered", least, own },
      { task: "tell", answer: "told", least, own },
    ],
    results: ["closed"],
    resultsTo: mayBeLate ? "slot" : "all",
    role: rowsRole(params),
  };
}

function rowsRole(params: LlfParams): Role {
  return {
    reply(context, task, table): Reply {
      const here = new RowsRound(context, params);
      const asked = task as Asked;
      checkCohort(here, asked.members);
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
    conclude: (context, result, table) =>
      conclude(new RowsRound(context, params), result as UpdatesClosed, table),
  };
}

/** Refuses members that follow neither from the terms nor from absences they allow. */
function checkCohort({ context, params }: RowsRound, members: readonly string[]): void {
  const { quorum = context.slots.length, leastParties } = params;
  if (members.length < quorum) {
    refuse("protocol-failed", "The analyst names fewer members than the terms.");
  }
  checkMembers(members, context, leastParties);
}

function update(here: RowsRound, asked: UpdatesUpdate, table: Table): Reply {
  const { context, params } = here;
  const known = here.follow(asked);
  checkOrder(here, asked.number, known);
  const rows = here.scaledRows(table.rows);
  const audited = auditSums(here, rows, known.centroids);
  const sums = sumRows(here, rows, known.centroids);
  const leads = asked.members[0] === context.slot;
  const contribution: UpdatesSums = {
    kind: "sums",
    ...here.share(here.updates.encode(sums), asked.members, `update/${asked.number}`),
    start: pointsArray([], here.scaler.width),
    moved: leads ? twoDigits(known.moved) : null,
    stop: leads && isAtRest(params, known.moved),
  };
  const counts = sums.counts.map((count) => count / here.updates.weightUnit);
  const own: OwnShare = { asked: asked.number, counts };
  return { contribution, remember: { [KNOWN]: known, [OWN_SHARE]: own, ...audited } };
}

/** Refuses an update that was made already; a late party may have missed some. */
function checkOrder(here: RowsRound, number: number, known: Known): void {
  const { asked } = here.ownShare;
  const follows = here.params.quorum ? number > asked : number === asked + 1;
  const isNext = number === here.context.roundsOf("update");
  if (!isNext || number !== known.number + 1 || !follows) {
    refuse("protocol-failed", "The analyst asks for an update out of order.");
  }
}

function close(here: RowsRound, asked: UpdatesClose, table: Table): Reply {
  const known = here.followToTheEnd(asked);
  const rows = here.scaledRows(table.rows);
  const labels = labelRows(rows, known.centroids);
  const audited = audit(here.context, labels);
  const { units } = here.labels;
  const own = here.labels.encode(
    sumLabelled(rows, labels, here.params.clusters, units),
  );
  const contribution: UpdatesClosing = {
    kind: "closing",
    ...here.share(own, asked.members, `closing/${known.number}`),
  };
  return { contribution, remember: { [KNOWN]: known, [LABELS]: labels, ...audited } };
}

function gather(here: RowsRound, asked: UpdatesGather, table: Table): Reply {
  const known = here.followToTheEnd(asked);
  const final = here.means(known, asked);
  const rows = here.scaledRows(table.rows);
  const labels = finalLabels(here, rows, known);
  const { fuzzifier } = here.params;
  const degrees =
    fuzzifier === undefined ? [] : sumDegrees(rows, known.centroids, fuzzifier);
  const around = { ...sumAround(rows, labels, final), degrees };
  const contribution: UpdatesGathered = {
    kind: "gathered",
    ...here.share(
      here.aroundEncoding(known, final).encode(around),
      asked.members,
      `gathered/${known.number}`,
    ),
  };
  const remember = { [KNOWN]: known, [LABELS]: labels, [MEANS]: final };
  return { contribution, remember };
}

function tell(here: RowsRound, asked: UpdatesTell): Reply {
  const { context, params, scaler } = here;
  const known = here.followToTheEnd(asked);
  const final = here.means(known, asked);
  const around = here.around(known, final, asked);
  const leads = asked.members[0] === context.slot;
  const told = leads
    ? publish(params, scaler, known, final)
    : { clusters: [], centroids: [], sizes: [], coinciding: null };
  const converged = isAtRest(params, known.moved);
  const figures = figuresOf(around, final.means, known, converged);
  const contribution: UpdatesTold = {
    kind: "told",
    clusters: ints(told.clusters),
    centroids: pointsArray(told.centroids, scaler.width),
    sizes: ints(told.sizes),
    n_updates: known.number,
    n_coinciding: told.coinciding,
    digest: markOf(here, known, around.sizes),
    figures: leads && params.publish !== "nothing" ? rounded(figures) : null,
  };
  const found = { [MEANS]: final, [SIZES]: around.sizes, [FIGURES]: figures };
  return { contribution, remember: { [KNOWN]: known, ...found } };
}

/** Labels by the published numbers of clusters; a late party computes them now. */
function conclude(here: RowsRound, result: UpdatesClosed, table: Table): Outcome {
  const { context, params, scaler } = here;
  const known = here.followToTheEnd(result);
  const labels = finalLabels(here, here.scaledRows(table.rows), known);
  const final = here.means(known, result);
  const told = context.memory.get(SIZES) as readonly number[] | undefined;
  const sizes = told ?? here.around(known, final, result).sizes;
  if (params.init === "given") return { labels };
  const published = publish(params, scaler, known, final);
  const order = orderClusters(params, known, sizes, published);
  return { labels: labels.map((label) => order.indexOf(label)) };
}

function finalLabels(here: RowsRound, rows: Points, known: Known): readonly number[] {
  const found = here.context.memory.get(LABELS) as readonly number[] | undefined;
  return found ?? labelRows(rows, known.centroids);
}

/** A digest over all bits of the result, which must be the same for all parties. */
function markOf(here: RowsRound, known: Known, sizes: readonly number[]): string {
  const { data } = ints(sizes);
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const result = concat([digestOf(known.centroids, known.number), bits]);
  return groupDigestOfBytes(here.context, "column", "told", result);
}

function twoDigits(moved: number | null): number | null {
  return moved === null ? null : Number(moved.toPrecision(2));
}
