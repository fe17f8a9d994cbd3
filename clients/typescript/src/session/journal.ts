/** The tasks that a party has answered so far, and the lines that it received. */

import { refuse } from "../wire/problems.ts";
import { START, type Entry } from "./transcript.ts";

/** A sum's total is read two answers later at most. */
const RECENT = 3;

export interface Told {
  readonly round: number;
  readonly attempt: number;
  readonly transcript: string;
}

/**
 * round, attempt: of the last task that was answered; 0 before the first.
 * stage, exchange: those of that task.
 * answered: for each kind of task of this stage, how many rounds were answered.
 * asked: digest of the part that is the same in all attempts of the round.
 * members: the slots in the last attempt, if the task names them.
 * stopped: why this party answers nothing any more; empty while it does.
 * line: number of the transcript's last line that is known.
 * recent: the last rounds that were answered.
 * told: the attempts since the first of these, in order.
 * toldStage, asks: the stage of the last round that everybody was told of, and how many of
 *   its rounds asked each kind of task, those among them in which this party was not asked.
 */
export interface Journal {
  readonly round: number;
  readonly attempt: number;
  readonly stage: number;
  readonly exchange: number;
  readonly answered: Readonly<Record<string, number>>;
  readonly asked: string;
  readonly members: readonly string[];
  readonly stopped: string;
  readonly line: number;
  readonly recent: readonly number[];
  readonly told: readonly Told[];
  readonly toldStage: string;
  readonly asks: Readonly<Record<string, number>>;
}

export const NEW_JOURNAL: Journal = {
  round: 0,
  attempt: 0,
  stage: -1,
  exchange: 0,
  answered: {},
  asked: "",
  members: [],
  stopped: "",
  line: 0,
  recent: [],
  told: [],
  toldStage: "",
  asks: {},
};

/** Refuses with the reason where a party answers nothing any more. */
export function checkGoing({ stopped }: Journal): void {
  if (stopped) refuse("task-refused", `This party has stopped: ${stopped}`);
}

/** The transcript up to the last line that is known. */
export function transcriptOf(journal: Journal): string {
  return journal.told.at(-1)?.transcript ?? START;
}

/** The transcript up to an attempt of the last rounds. */
export function transcriptAt(
  told: readonly Told[],
  round: number,
  attempt: number,
): string {
  const found = told.find((each) => each.round === round && each.attempt === attempt);
  return (
    found?.transcript ??
    refuse(
      "protocol-failed",
      `The analyst did not announce attempt ${attempt} of round ${round}.`,
    )
  );
}

/** The journal with entries that follow; attempts and rounds count up by one. */
export function appendEntries(journal: Journal, entries: readonly Entry[]): Journal {
  const first = journal.recent[0] ?? 0;
  const told = journal.told.filter(({ round }) => round >= first);
  let here = journal.told.at(-1) ?? { round: 0, attempt: 0 };
  let { toldStage, asks } = journal;
  for (const { stage, round, attempt, asks: kind, transcript } of entries) {
    const isNextAttempt = round === here.round && attempt === here.attempt + 1;
    if (!isNextAttempt && !(round === here.round + 1 && attempt === 1)) {
      refuse("task-refused", `Attempt ${attempt} of round ${round} is out of order.`);
    }
    if (stage !== toldStage) [toldStage, asks] = [stage, {}];
    if (attempt === 1) asks = { ...asks, [kind]: (asks[kind] ?? 0) + 1 };
    here = { round, attempt };
    told.push({ round, attempt, transcript });
  }
  const line = entries.at(-1)?.number ?? journal.line;
  return { ...journal, line, told, toldStage, asks };
}

/** The journal once a round is answered, with these fields changed. */
export function recordAnswer(
  journal: Journal,
  here: { readonly round: number; readonly attempt: number },
  changes: Partial<Journal>,
): Journal {
  const recent = [...journal.recent, here.round].slice(-RECENT);
  return { ...journal, ...changes, round: here.round, attempt: here.attempt, recent };
}
