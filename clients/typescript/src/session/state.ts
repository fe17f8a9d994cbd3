/** The state of a party between two tasks, and the step from one to the next. */

import { hexDigest } from "../wire/bytes.ts";
import { readPacket } from "../wire/packets.ts";
import { asProblem, FINAL, refuse } from "../wire/problems.ts";
import type { Memory, Table } from "./contract.ts";
import type { PartyEngine } from "./engine.ts";
import { NEW_JOURNAL, type Journal } from "./journal.ts";

/** The last answer, and the memory before and after its round. */
export interface PartyState {
  readonly journal: Journal;
  readonly before: Memory;
  readonly after: Memory;
  readonly taskDigest: string;
  readonly contribution: Uint8Array;
}

export const NOTHING_ANSWERED: PartyState = {
  journal: NEW_JOURNAL,
  before: new Map(),
  after: new Map(),
  taskDigest: "",
  contribution: new Uint8Array(),
};

/**
 * The state after a task; the state itself if the same task comes again.
 *
 * Throws the problem for which the task is refused; see {@link stopAt}.
 */
export async function answerTask(
  engine: PartyEngine,
  last: PartyState,
  task: Uint8Array,
  table: Table,
  acknowledged: boolean,
): Promise<PartyState> {
  const asked = readPacket(task);
  const { round, attempt } = asked.address;
  const taskDigest = hexDigest(task);
  if (round === last.journal.round && attempt === last.journal.attempt) {
    if (taskDigest === last.taskDigest) return last;
    refuse("equivocation", `Round ${round}, attempt ${attempt}, differs.`);
  }
  const before = memoryBefore(last, round);
  const standing = { journal: last.journal, memory: before };
  const answer = await engine.reply(standing, asked, table, acknowledged);
  const { journal, memory: after, contribution } = answer;
  return { journal, before, after, taskDigest, contribution };
}

/** The state in which a party answers nothing more, where the analyst broke the rules. */
export function stopAt(error: unknown, last: PartyState): PartyState {
  const { type, message } = asProblem(error);
  const { journal } = last;
  if (!FINAL.has(type) || journal.stopped) return last;
  return { ...last, journal: { ...journal, stopped: message } };
}

/** A new attempt starts from the memory before its round; the journal goes on. */
function memoryBefore({ journal, before, after }: PartyState, round: number): Memory {
  return round > journal.round ? after : before;
}
