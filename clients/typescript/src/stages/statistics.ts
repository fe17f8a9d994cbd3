/** Stage: small column groups pool their moments by way of their first slot. */

import type {
  StatisticsMeasured,
  StatisticsMoments,
  StatisticsPooled,
  StatisticsPooledMoments,
} from "../generated/shared.ts";
import type { PartyContext, Reply, Role, Stage, Table } from "../session/contract.ts";
import { floats, type Floats } from "../wire/arrays.ts";
import { refuse } from "../wire/problems.ts";
import {
  measure,
  POOLED,
  shownOf,
  squared,
  sumOf,
  type Moments,
  type Pooled,
} from "./pooled.ts";

const OWN = "own-moments";
const LARGEST = 1e100;
const MEASURED: StatisticsMeasured = { kind: "measured" };
const POOLED_COLUMNS: StatisticsPooled = { kind: "pooled" };

const poolerOf = (asked: Pooled): Role => ({
  reply(context, task, table) {
    const [leader, ...others] = context.group("column");
    if (task.kind === "measure") return measureOwn(context, asked, leader!, table);
    if (leader !== context.slot) return { contribution: POOLED_COLUMNS };
    const content = {
      ...written(context.recall<Moments>(POOLED)),
      kind: "pooled-moments",
    } satisfies StatisticsPooledMoments;
    return {
      contribution: POOLED_COLUMNS,
      envelopes: others.map((peer) => ({ peer, content })),
    };
  },
  receive(context, envelopes) {
    const [leader, ...others] = context.group("column");
    const found = new Map(
      envelopes.map(({ peer, content }) => [
        peer,
        readMoments(context, asked, content as StatisticsMoments),
      ]),
    );
    if (context.slot !== leader) {
      const pooled = found.get(leader!);
      return pooled ? { [POOLED]: pooled } : missing();
    }
    if (found.size !== others.length) missing();
    const theirs = others.map((slot) => found.get(slot) ?? missing());
    return { [POOLED]: pool([context.recall<Moments>(OWN), ...theirs]) };
  },
});

/** The stage; `isMember`: whether the party's column group is small enough for it. */
export function statisticsStage(asked: Pooled, isMember: boolean): Stage {
  const least = isMember ? 1 : 0;
  return {
    name: "statistics",
    exchanges: [
      { task: "measure", answer: "measured", least },
      { task: "pool", answer: "pooled", least },
    ],
    envelopes: ["moments", "pooled-moments"],
    role: poolerOf(asked),
  };
}

function measureOwn(
  context: PartyContext,
  asked: Pooled,
  leader: string,
  table: Table,
): Reply {
  const own = shownOf(measure(table), asked);
  if (leader !== context.slot) {
    const content = { ...written(own), kind: "moments" } satisfies StatisticsMoments;
    return { contribution: MEASURED, envelopes: [{ peer: leader, content }] };
  }
  const isAlone = context.group("column").length === 1;
  const remember = isAlone ? { [OWN]: own, [POOLED]: own } : { [OWN]: own };
  return { contribution: MEASURED, remember };
}

function written({ rows, mean, deviations, minimum, maximum }: Moments) {
  return {
    n_rows: rows,
    mean: floats(mean),
    deviations: floats(deviations),
    minimum: floats(minimum),
    maximum: floats(maximum),
  };
}

function readMoments(
  context: PartyContext,
  asked: Pooled,
  { n_rows, mean, deviations, minimum, maximum }: StatisticsMoments,
): Moments {
  const { n_columns } = context.member(context.slot);
  const isWide = ({ data }: Floats, isAsked: boolean) =>
    data.length === (isAsked ? n_columns : 0);
  if (!isWide(mean, asked.moments) || !isWide(minimum, asked.ranges)) {
    refuse("invalid-array", "A party's moments are of other columns.");
  }
  const read = {
    mean: [...mean.data],
    deviations: [...deviations.data],
    minimum: [...minimum.data],
    maximum: [...maximum.data],
  };
  const numbers = Object.values(read).flat();
  if (numbers.some((number) => Math.abs(number) > LARGEST)) {
    refuse("invalid-array", `A party's moments are larger than ${LARGEST}.`);
  }
  return { rows: n_rows, ...read };
}

/** Moments of all rows: Chan, Golub and LeVeque (1983), over all parts at once. */
function pool(parts: readonly Moments[]): Moments {
  const rows = sumOf(parts.map((part) => part.rows));
  const pooled = parts[0]!.mean.map((first, feature) => {
    const means = parts.map((part) => part.mean[feature]!);
    const weighted = parts.map((part, n) => part.rows * means[n]!);
    const isEqual = means.every((mean) => mean === first);
    const mean = isEqual ? first : sumOf(weighted) / rows;
    const within = sumOf(parts.map((part) => part.deviations[feature]!));
    const between = parts.map((part, n) => part.rows * squared(means[n]! - mean));
    return { mean, deviation: within + sumOf(between) };
  });
  const extremes = (name: "minimum" | "maximum", most: (...all: number[]) => number) =>
    parts[0]![name].map((_, f) => most(...parts.map((part) => part[name][f]!)));
  return {
    rows,
    mean: pooled.map(({ mean }) => mean),
    deviations: pooled.map(({ deviation }) => deviation),
    minimum: extremes("minimum", Math.min),
    maximum: extremes("maximum", Math.max),
  };
}

function missing(): never {
  return refuse("protocol-failed", "The moments of a member are missing.");
}
