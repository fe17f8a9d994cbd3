/** The arguments and results of a protocol's roles. */

import type { Agreement, Member } from "../roster/roster.ts";
import { groupOf, type Audience, type Slot } from "../roster/terms.ts";
import type { KeyedStream } from "../secrecy/chance.ts";
import { partyKeys, type PartyKeys } from "../secrecy/keys.ts";
import { ownStream, pairStream, type Place } from "../secrecy/own-streams.ts";
import type { Message } from "../wire/messages.ts";
import { refuse } from "../wire/problems.ts";
import { transcriptAt, type Journal } from "./journal.ts";

/** Rows of a table, each with a number per column; ids where rows are named. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Float64Array[];
  readonly ids?: readonly string[];
}

/** Rows of a party that a stage has selected, ascending, and how many of each slot. */
export interface Selection {
  readonly rows: readonly number[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Where a stage remembers its {@link Selection}: later stages see these rows alone. */
export const SELECTION = "selection";

/** Values that roles keep from round to round, by names that they choose. */
export type Memory = ReadonlyMap<string, unknown>;

export interface PeerMessage {
  readonly peer: string;
  readonly content: Message;
}

/** `awaits`: slots of which envelopes have to come with the next task. */
export interface Reply {
  readonly contribution: Message;
  readonly envelopes?: readonly PeerMessage[];
  readonly awaits?: readonly string[];
  readonly remember?: Readonly<Record<string, unknown>>;
}

/** Labels of the own rows, in their order; -1 for rows of no cluster. */
export interface Outcome {
  readonly labels: readonly number[];
}

/** A party's side of a stage; the engine refuses messages that it does not declare. */
export interface Role {
  reply(context: PartyContext, task: Message, table: Table): Reply | Promise<Reply>;
  /** Returns what to remember of received envelopes. */
  receive?(
    context: PartyContext,
    envelopes: readonly PeerMessage[],
  ): Readonly<Record<string, unknown>>;
  conclude?(context: PartyContext, result: Message, table: Table): Outcome;
}

/** A task, what answers it, and how often it comes; `own`: see packets. */
export interface Exchange {
  readonly task: string;
  readonly answer: string;
  readonly least?: number;
  readonly most?: number;
  readonly audience?: Audience;
  readonly own?: readonly string[];
}

/** `run`: the run that it belongs to, from 0; unset if it belongs to none. */
export interface Stage {
  readonly name: string;
  readonly run?: number;
  readonly exchanges: readonly Exchange[];
  readonly envelopes?: readonly string[];
  readonly results?: readonly string[];
  readonly resultsTo?: Audience;
  readonly role: Role;
}

const OF_RUN = "@";

/** The name under which a role of a run remembers something. */
export function nameInRun(name: string, run: number | undefined): string {
  return run === undefined ? name : `${name}${OF_RUN}${run}`;
}

/** The memory of one run, with that outside all runs. */
function memoryOfRun(memory: Memory, run: number | undefined): Memory {
  if (run === undefined) return memory;
  const suffix = nameInRun("", run);
  const own = [...memory].filter(([name]) => name.endsWith(suffix));
  return new Map([
    ...memory,
    ...own.map(([name, value]) => [name.slice(0, -suffix.length), value] as const),
  ]);
}

/** A party's place in a session, its memory and its random streams. */
export class PartyContext {
  readonly slots: readonly string[];
  /** The memory of this run, and that outside all runs. */
  readonly memory: Memory;

  constructor(
    readonly agreement: Agreement,
    readonly slot: string,
    private readonly at: Stage,
    readonly round: number,
    readonly attempt: number,
    private readonly everything: Memory,
    private readonly journal: Journal,
    private readonly entropy: Uint8Array,
  ) {
    this.slots = agreement.roster.map((member) => member.slot);
    this.memory = memoryOfRun(everything, at.run);
  }

  get stage(): string {
    return this.at.name;
  }

  /** The context of the same party in another stage. */
  within(stage: Stage): PartyContext {
    return new PartyContext(
      ...([this.agreement, this.slot, stage, this.round, this.attempt] as const),
      ...([this.everything, this.journal, this.entropy] as const),
    );
  }

  /** The value that the roles of a run remember under a name. */
  recallOfRun<T>(run: number, name: string): T | undefined {
    return this.everything.get(nameInRun(name, run)) as T | undefined;
  }

  /** The values that the roles of all other runs remember under a name. */
  recallOfOtherRuns<T>(name: string): readonly T[] {
    const own = nameInRun(name, this.at.run);
    const found = [...this.everything].filter(
      ([each]) => each.startsWith(`${name}${OF_RUN}`) && each !== own,
    );
    return found.map(([, value]) => value as T);
  }

  get keys(): PartyKeys {
    return partyKeys(this.entropy, this.agreement.terms.session, this.slot);
  }

  /** The transcript (hex) up to the attempt in hand. */
  get transcript(): string {
    return this.transcriptAt(this.round, this.attempt);
  }

  transcriptAt(round: number, attempt: number): string {
    return transcriptAt(this.journal.told, round, attempt);
  }

  /** How many rounds of this stage asked a kind of task, of whomever. */
  roundsOf(task: string): number {
    return this.journal.asks[task] ?? 0;
  }

  member(slot: string): Member {
    const found = this.agreement.roster.find((member) => member.slot === slot);
    return found ?? refuse("malformed", "This session has no such slot.");
  }

  /** How many rows of a slot take part. */
  rowsOf(slot: string): number {
    const selected = this.memory.get(SELECTION) as Selection | undefined;
    return selected?.counts[slot] ?? this.member(slot).n_rows;
  }

  get place(): Slot {
    const slots = this.agreement.terms.layout.slots;
    return slots.find(({ name }) => name === this.slot)!;
  }

  /** The slots of this party's row or column group, in order; the first one leads. */
  group(scope: "row" | "column"): readonly string[] {
    return groupOf(this.agreement.terms, this.slot, scope);
  }

  /** A value that an earlier round must have left in memory. */
  recall<T>(name: string): T {
    const found = this.memory.get(name);
    if (found === undefined) {
      refuse("protocol-failed", `No '${name}' arrived in an earlier round.`);
    }
    return found as T;
  }

  /** The party's own stream for one purpose of this attempt. */
  stream(purpose: string): KeyedStream {
    return ownStream(this.entropy, this.origin, purpose, this.transcript);
  }

  /** The party's own stream for one purpose, whatever the attempt. */
  lastingStream(purpose: string): KeyedStream {
    return ownStream(this.entropy, this.origin, purpose);
  }

  /** The stream that this party shares with another one, in this attempt. */
  pairStream(peer: string, ...labels: string[]): KeyedStream {
    const pair = this.slots.filter((slot) => slot === peer || slot === this.slot);
    const { x25519 } = this.member(peer).keys;
    return pairStream(this.keys.opening, x25519, this.transcript, pair, labels);
  }

  private get origin(): Place {
    const { session } = this.agreement.terms;
    return { session, slot: this.slot, stage: this.stage };
  }
}
