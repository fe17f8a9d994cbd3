/** The transcript: a hash chain of all tasks, which every party receives. */

import { hexDigest } from "../wire/bytes.ts";
import { readObject, type JsonObject } from "../wire/json-reading.ts";
import {
  fieldsOf,
  readCount,
  readRound,
  readText,
  type RoundRef,
} from "../wire/packets.ts";
import { refuse } from "../wire/problems.ts";

export const START = "0".repeat(64);

/** A line: one attempt of a round. `told`: a digest for each group of its audience. */
export interface Entry extends RoundRef {
  readonly number: number;
  readonly previous: string;
  readonly asks: string;
  readonly leftOut: readonly string[];
  readonly told: readonly string[];
  /** The digest of this line: the transcript up to here. */
  readonly transcript: string;
}

interface Line {
  readonly number: number;
  readonly previous: string;
  readonly digest: string;
  readonly entry: Entry | undefined;
}

const ENTRY_FIELDS = [
  ...["asks", "attempt", "left_out", "number", "previous", "round", "stage", "told"],
];

/**
 * The entries that follow a known line; `task-refused` where lines do not follow it.
 *
 * @param lines may begin with lines that are known already
 * @param known number and digest of the last line that is known; 0 and START for none
 */
export function followTranscript(
  lines: readonly string[],
  agreement: string,
  known: { readonly number: number; readonly digest: string },
): readonly Entry[] {
  const read = lines.map((line) => readLine(line, agreement));
  const before = read.filter(({ number }) => number <= known.number).at(-1);
  if (before && before.digest !== known.digest) {
    refuse("task-refused", "The analyst changed lines that this party has received.");
  }
  const later = read.filter(({ number }) => number > known.number);
  let { number, digest } = known;
  for (const line of later) {
    if (line.number !== number + 1 || line.previous !== digest) {
      refuse("task-refused", "The transcript omits earlier lines.");
    }
    ({ number, digest } = line);
  }
  return later.flatMap(({ entry }) => (entry ? [entry] : []));
}

/** The last line, which describes the open attempt. */
export function lastEntry(lines: readonly string[], agreement: string): Entry {
  const line = lines.at(-1);
  const entry = line === undefined ? undefined : readLine(line, agreement).entry;
  return entry ?? refuse("task-refused", "The analyst sent no transcript.");
}

function readLine(text: string, agreement: string): Line {
  try {
    return parseLine(readObject(text), text, agreement);
  } catch {
    return refuse("task-refused", "A line of the transcript cannot be read.");
  }
}

function parseLine(value: JsonObject, text: string, agreement: string): Line {
  const [number, previous] = [readCount(value, "number"), readText(value, "previous")];
  const digest = hexDigest(text);
  if (number === 1) {
    fieldsOf(value, ["agreement", "number", "previous"]);
    if (value["agreement"] !== agreement)
      refuse("task-refused", "The transcript belongs to another agreement.");
    return { number, previous, digest, entry: undefined };
  }
  const fields = fieldsOf(value, ENTRY_FIELDS);
  const entry = {
    ...readRound(fields),
    number,
    previous,
    asks: readText(fields, "asks"),
    leftOut: readTexts(fields["left_out"]),
    told: readTexts(fields["told"]),
    transcript: digest,
  };
  return { number, previous, digest, entry };
}

function readTexts(value: unknown): readonly string[] {
  const isList =
    Array.isArray(value) && value.every((each) => typeof each === "string");
  return isList
    ? (value as string[])
    : refuse("malformed", "Expected a list of texts.");
}
