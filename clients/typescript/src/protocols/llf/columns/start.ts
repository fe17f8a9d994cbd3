/**
 * Stage for split columns: a start from means of clusters that the analyst sends.
 *
 * It clusters the masked distances that it reads, to the means of groups of rows.
 */

import type {
  StartConfirmed,
  StartGroupDistances,
  StartStartFrom,
} from "../../../generated/llf.ts";
import { meanOf, type Points } from "../../../numerics/points.ts";
import type {
  PartyContext,
  Reply,
  Role,
  Stage,
  Table,
} from "../../../session/contract.ts";
import { numbers } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { countLabels } from "../cluster-sums.ts";
import { checkRows, type LlfParams } from "../params.ts";
import { rememberedScale, Scaler, START } from "../scaler.ts";
import { columnsOf, hiddenDistances } from "./distances.ts";

const MOST_ROWS = 20_000;
const MOST_GROUPS = 128;
const MOST_WORDS = 2 ** 21;
const LEAST_ROWS = 5;
const CONFIRMED: StartConfirmed = { kind: "confirmed" };

export function columnStartStage(params: LlfParams): Stage {
  return {
    name: "start",
    exchanges: [
      { task: "measure-groups", answer: "group-distances" },
      { task: "start-from", answer: "confirmed" },
    ],
    role: {
      reply: (context, task, table) =>
        task.kind === "measure-groups"
          ? measureGroups(context, params, table)
          : startFrom(context, params, task as StartStartFrom, table),
    } satisfies Role,
  };
}

function measureGroups(context: PartyContext, params: LlfParams, table: Table): Reply {
  const { rows, groups } = sampleOf(context);
  checkRows(params, table);
  const sample = travellingRows(context, params, table).slice(0, rows);
  const means = meansOf(
    sample,
    sample.map((_, row) => row % groups),
    groups,
  );
  const contribution: StartGroupDistances = {
    kind: "group-distances",
    words: hiddenDistances(context, params, sample, means, "groups", true),
  };
  return { contribution, remember: rememberedScale(context, params, table) };
}

function startFrom(
  context: PartyContext,
  params: LlfParams,
  asked: StartStartFrom,
  table: Table,
): Reply {
  const { clusters } = params;
  const { rows } = sampleOf(context);
  const labels = numbers(asked.labels);
  if (labels.length !== rows || labels.some((label) => label >= clusters)) {
    refuse(
      "protocol-failed",
      "The analyst's labels do not fit the rows to start from.",
    );
  }
  const least = Math.max(1, Math.min(LEAST_ROWS, Math.floor(rows / clusters)));
  if (countLabels(labels, clusters).some((size) => size < least)) {
    refuse("protocol-failed", "The analyst starts a cluster from too few rows.");
  }
  const sample = travellingRows(context, params, table).slice(0, rows);
  const start = meansOf(sample, labels, clusters);
  return { contribution: CONFIRMED, remember: { [START]: start } };
}

/** Scaled rows in the secret order in which they travel. */
export function travellingRows(
  context: PartyContext,
  params: LlfParams,
  table: Table,
): Points {
  const scaler = Scaler.of(context, params, table);
  const order = context.recall<readonly number[]>("order");
  return order.map((row) => scaler.scaled(table.rows[row]!));
}

/** How many rows are measured, and to the means of how many groups of them. */
function sampleOf(context: PartyContext): { rows: number; groups: number } {
  const rows = Math.min(context.rowsOf(context.slots[0]!), MOST_ROWS);
  const wanted = Math.min(columnsOf(context) + 1, Math.floor(rows / LEAST_ROWS));
  const groups = Math.max(2, Math.min(wanted, MOST_GROUPS));
  return { rows: Math.min(rows, Math.floor(MOST_WORDS / groups)), groups };
}

function meansOf(rows: Points, labels: readonly number[], groups: number): Points {
  return Array.from({ length: groups }, (_, group) =>
    meanOf(rows.filter((_, row) => labels[row] === group)),
  );
}
