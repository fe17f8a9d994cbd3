/** Stage: column groups pool the ranges of their columns by way of their first slot. */

import type {
  RangesMeasured,
  RangesOwnRanges,
  RangesPooled,
  RangesPooledRanges,
} from "../generated/dc.ts";
import type { PartyContext, Reply, Role, Stage, Table } from "../session/contract.ts";
import { floats } from "../wire/arrays.ts";
import { refuse } from "../wire/problems.ts";
import { measure, POOLED_RANGES, type Ranges } from "./pooled.ts";

const OWN = "own-ranges";
const LARGEST = 1e100;
const MEASURED: RangesMeasured = { kind: "measured" };
const POOLED_COLUMNS: RangesPooled = { kind: "pooled" };

const pooler: Role = {
  reply(context, task, table) {
    const [leader, ...others] = context.group("column");
    if (task.kind === "measure") return measureOwn(context, leader!, table);
    if (leader !== context.slot) return { contribution: POOLED_COLUMNS };
    const content = {
      ...written(context.recall<Ranges>(POOLED_RANGES)),
      kind: "pooled-ranges",
    } satisfies RangesPooledRanges;
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
        readRanges(context, content as RangesOwnRanges),
      ]),
    );
    if (context.slot !== leader) {
      return { [POOLED_RANGES]: found.get(leader!) ?? missing() };
    }
    if (found.size !== others.length) missing();
    const theirs = others.map((slot) => found.get(slot) ?? missing());
    return { [POOLED_RANGES]: pool([context.recall<Ranges>(OWN), ...theirs]) };
  },
};

export const RANGES: Stage = {
  name: "ranges",
  exchanges: [
    { task: "measure", answer: "measured" },
    { task: "pool", answer: "pooled" },
  ],
  envelopes: ["own-ranges", "pooled-ranges"],
  role: pooler,
};

function measureOwn(context: PartyContext, leader: string, table: Table): Reply {
  const { minimum, maximum } = measure(table);
  const own = { minimum, maximum };
  if (leader !== context.slot) {
    const content = { ...written(own), kind: "own-ranges" } satisfies RangesOwnRanges;
    return { contribution: MEASURED, envelopes: [{ peer: leader, content }] };
  }
  const isAlone = context.group("column").length === 1;
  const remember = isAlone ? { [POOLED_RANGES]: own } : { [OWN]: own };
  return { contribution: MEASURED, remember };
}

function written({ minimum, maximum }: Ranges) {
  return { minimum: floats(minimum), maximum: floats(maximum) };
}

function readRanges(
  context: PartyContext,
  { minimum, maximum }: RangesOwnRanges,
): Ranges {
  const { n_columns } = context.member(context.slot);
  if (minimum.data.length !== n_columns) {
    refuse("invalid-array", "A party's ranges are of other columns.");
  }
  const read = { minimum: [...minimum.data], maximum: [...maximum.data] };
  const numbers = Object.values(read).flat();
  if (numbers.some((number) => Math.abs(number) > LARGEST)) {
    refuse("invalid-array", `A party's ranges are larger than ${LARGEST}.`);
  }
  return read;
}

function pool(parts: readonly Ranges[]): Ranges {
  const extremes = (name: keyof Ranges, most: (...all: number[]) => number) =>
    parts[0]![name].map((_, f) => most(...parts.map((part) => part[name][f]!)));
  return {
    minimum: extremes("minimum", Math.min),
    maximum: extremes("maximum", Math.max),
  };
}

function missing(): never {
  return refuse("protocol-failed", "The ranges of a member are missing.");
}
