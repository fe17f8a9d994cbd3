/**
 * Planted rows: people who do not exist, whom every party of a row group has.
 *
 * An analyst links them without knowing which they are. One that joins rows of different
 * people, or leaves common ones out, does so to planted rows too, and parties see it.
 */

import {
  columnsOf,
  nameOfPart,
  partsOfKeys,
  type MatchKey,
} from "../alignment/match-keys/match-key.ts";
import type { KeyedStream } from "../secrecy/chance.ts";
import type { PartyContext } from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";
import type { CommonRows } from "./common-rows.ts";
import { groupStream } from "./secrets.ts";

/** How many rows each party adds to its list. */
export const PLANTED = 128;

const OTHERWISE = 0.15; // how often a party writes a column otherwise than the first
const SHOWS = 0.7; // how often a part of a key shows it
const VALUE_BYTES = 32;

/** The values of the planted rows at this party, key by key. */
export function plantedValues(
  context: PartyContext,
  keys: readonly MatchKey[],
): readonly Uint8Array[][] {
  const shared = takeValues(groupStream(context, "row", "planted-rows"), keys.length);
  if (context.group("row")[0] === context.slot) return shared;
  const stream = context.lastingStream("planted-rows");
  const differs = drawDiffering(stream, keys);
  const own = takeValues(stream, keys.length);
  return shared.map((values, key) =>
    values.map((value, row) => (differs[key]![row] ? own[key]![row]! : value)),
  );
}

/** Which values are not those of the first party, key by key; of no row all are. */
function drawDiffering(
  stream: KeyedStream,
  keys: readonly MatchKey[],
): readonly boolean[][] {
  const [columns, parts] = [columnsOf(keys), partsOfKeys(keys)];
  const otherwise = chances(stream, columns, OTHERWISE);
  const shows = chances(stream, parts.map(nameOfPart), SHOWS);
  const rows = [...Array(PLANTED).keys()];
  const differing = keys.map((key) =>
    rows.map((row) =>
      key.some(
        (part) =>
          shows.get(nameOfPart(part))![row] &&
          part.columns.some((column) => otherwise.get(column)![row]),
      ),
    ),
  );
  const areAll = rows.map((row) => differing.every((each) => each[row]));
  return differing.map((each) => each.map((differs, row) => differs && !areAll[row]));
}

/** For each name in turn, what comes true in each of the planted rows. */
function chances(
  stream: KeyedStream,
  names: readonly string[],
  chance: number,
): ReadonlyMap<string, readonly boolean[]> {
  return new Map(
    names.map((name) => [name, Array.from(stream.uniform(PLANTED), (x) => x < chance)]),
  );
}

/** The rows of people among all that take part, and what the row group knows of each. */
export function takePlantedOut(rows: readonly number[], people: number): CommonRows {
  const planted = new Set(rows.filter((row) => row >= people));
  if (planted.size < PLANTED) {
    refuse(
      "protocol-failed",
      "The analyst joins rows of different people, or leaves common ones out: rows " +
        "that all parties planted are not among them.",
    );
  }
  const names = rows.map((row) => `planted:${row < people ? -1 : row - people}`);
  return { rows: rows.filter((row) => row < people), names };
}

function takeValues(stream: KeyedStream, keys: number): Uint8Array[][] {
  const take = () => stream.take(VALUE_BYTES);
  return Array.from({ length: keys }, () => Array.from({ length: PLANTED }, take));
}
