/** A party's side of a session: envelopes opened, tasks answered, results read. */

import { pickRows, putBack } from "../alignment/arrival.ts";
import type { Alignment } from "../alignment/params.ts";
import type { Agreement } from "../roster/roster.ts";
import { openEnvelope, sealEnvelope, type Binding } from "../secrecy/envelopes.ts";
import {
  decodeMessage,
  readMessage,
  writeMessage,
  type MessageSpec,
  type Role as MessageRole,
} from "../wire/messages.ts";
import {
  readPacket,
  writePacket,
  type Envelope,
  type EnvelopeLabel,
  type Packet,
} from "../wire/packets.ts";
import { refuse } from "../wire/problems.ts";
import { Admission, kindOf } from "./admission.ts";
import {
  nameInRun,
  PartyContext,
  SELECTION,
  type Memory,
  type Outcome,
  type PeerMessage,
  type Selection,
  type Stage,
  type Table,
} from "./contract.ts";
import { checkGoing, type Journal } from "./journal.ts";
import { closingStage } from "./closing.ts";
import { nameOfAnyRun } from "./runs.ts";
import { CLOSING, OPENING, openingStage } from "./signatures.ts";

/** A protocol: its messages, and the stages of a slot under an agreement. */
export interface Protocol {
  readonly version: number;
  readonly messages: readonly MessageSpec[];
  /** How rows of a row group come together; unset where no protocol step matches rows. */
  readonly alignment?: Alignment;
  /** How many parties have to take part until the end; unset for all. */
  readonly quorum?: number;
  stages(agreement: Agreement, slot: string): readonly Stage[];
}

/** A party's state: what it has answered, and what its roles remember. */
export interface Standing {
  readonly journal: Journal;
  readonly memory: Memory;
}

export interface TaskOutcome extends Standing {
  readonly contribution: Uint8Array;
}

const AWAITED = "engine.awaited";

export class PartyEngine {
  readonly #agreement: Agreement;
  readonly #slot: string;
  readonly #entropy: Uint8Array;
  readonly #protocol: Protocol;
  readonly #stages: readonly Stage[];
  readonly #admission: Admission;

  /** `entropy`: 32 bytes from which every private draw follows. */
  constructor(
    agreement: Agreement,
    slot: string,
    entropy: Uint8Array,
    protocol: Protocol,
  ) {
    const own = protocol.stages(agreement, slot);
    const signers = protocol.quorum ?? agreement.roster.length;
    const closing = closingStage(own, agreement, signers);
    this.#agreement = agreement;
    this.#slot = slot;
    this.#entropy = entropy;
    this.#protocol = protocol;
    this.#stages = [openingStage(), ...own, closing];
    this.#admission = new Admission(agreement, slot, this.#stages, signers);
  }

  /**
   * The next state and the answer; the caller stores both before it sends a byte.
   *
   * A new attempt is answered from the memory before its round.
   */
  async reply(
    standing: Standing,
    asked: Packet,
    table: Table,
    acknowledged: boolean,
  ): Promise<TaskOutcome> {
    checkGoing(standing.journal);
    this.#checkAddress(asked);
    const stage = this.#stageOf(asked.address.stage);
    const task = readMessage(this.#spec(stage, "task", kindOf(asked)), asked.record);
    const followed = this.#admission.follow(standing.journal, asked, acknowledged);
    const journal = this.#admission.admit(followed, asked);
    const received = await this.#receive(standing.memory, journal, asked);
    const context = this.#context(journal, received, asked, stage);
    const reply = await stage.role.reply(context, task, selectedRows(received, table));
    const { answer } = stage.exchanges.find((each) => each.task === task.kind)!;
    const content = writeMessage(
      this.#spec(stage, "contribution", answer),
      reply.contribution,
    );
    const envelopes = await Promise.all(
      (reply.envelopes ?? []).map((each) => this.#seal(context, stage, each)),
    );
    const kept = remember(received, stage, reply.remember ?? {});
    const memory = new Map([...kept, [AWAITED, reply.awaits ?? []] as const]);
    const contribution = writePacket(asked.address, content, envelopes);
    return { journal, memory, contribution };
  }

  /** The part of a result that is for this party. */
  conclude(
    standing: Standing,
    body: Uint8Array,
    table: Table,
    acknowledged: boolean,
  ): Outcome {
    checkGoing(standing.journal);
    const result = readPacket(body);
    this.#checkAddress(result);
    const stage = this.#stages.at(-1)!;
    const spec = this.#spec(stage, "result", kindOf(result));
    const read = readMessage(spec, result.record);
    const journal = this.#admission.follow(standing.journal, result, acknowledged);
    this.#admission.checkResult(journal, result);
    const context = this.#context(journal, standing.memory, result, stage);
    const { conclude } = stage.role;
    if (!conclude) refuse("malformed", "This protocol has no result for parties.");
    const selected = selectedRows(standing.memory, table);
    const outcome = conclude(context, read, selected);
    return putSelectedBack(standing.memory, outcome, table);
  }

  #checkAddress({ address }: Packet): void {
    const { terms, digest } = this.#agreement;
    if (
      address.session !== terms.session ||
      address.agreement !== digest ||
      address.slot !== this.#slot
    ) {
      refuse("agreement-mismatch", "The analyst sent a message of another session.");
    }
  }

  #context(
    journal: Journal,
    memory: Memory,
    packet: Packet,
    stage: Stage,
  ): PartyContext {
    const { round, attempt } = packet.address;
    return new PartyContext(
      ...([this.#agreement, this.#slot, stage, round, attempt] as const),
      ...([memory, journal, this.#entropy] as const),
    );
  }

  #stageOf(name: string): Stage {
    const stage = this.#stages.find((each) => each.name === name);
    return (
      stage ??
      refuse("malformed", "The message names a stage that this session does not have.")
    );
  }

  #spec(stage: Stage, role: MessageRole, kind: string): MessageSpec {
    const isOurs = stage.name === OPENING || stage.name === CLOSING;
    const isDeclared =
      (role === "task" && stage.exchanges.some((each) => each.task === kind)) ||
      (role === "contribution" &&
        stage.exchanges.some((each) => each.answer === kind)) ||
      (role === "envelope" && stage.envelopes?.includes(kind)) ||
      (role === "result" && (isOurs ? stage.results : [])?.includes(kind));
    const found = this.#protocol.messages.find(
      (spec) =>
        spec.stage === nameOfAnyRun(stage) && spec.role === role && spec.kind === kind,
    );
    return isDeclared && found
      ? found
      : refuse("malformed", "A record of that kind has no place here.");
  }

  async #receive(memory: Memory, journal: Journal, asked: Packet): Promise<Memory> {
    const came = new Set(asked.envelopes.map(({ label }) => label.peer));
    for (const slot of (memory.get(AWAITED) as readonly string[] | undefined) ?? []) {
      if (!came.has(slot)) {
        refuse("envelope-refused", `The analyst withholds the envelope of '${slot}'.`);
      }
    }
    let kept = memory;
    for (const [round, envelopes] of byRound(asked.envelopes)) {
      checkFresh(journal, asked.address.round, round, envelopes);
      // one round belongs to one stage
      const stage = this.#stageOf(envelopes[0]!.label.stage);
      const context = this.#context(journal, kept, asked, stage);
      const opened: PeerMessage[] = [];
      for (const each of envelopes) opened.push(await this.#open(context, stage, each));
      if (!stage.role.receive)
        refuse("envelope-refused", "This stage receives no envelopes.");
      kept = remember(kept, stage, stage.role.receive(context, opened));
    }
    return kept;
  }

  async #open(
    context: PartyContext,
    stage: Stage,
    { label, sealed }: Envelope,
  ): Promise<PeerMessage> {
    const isKnown = label.stage === stage.name && context.slots.includes(label.peer);
    if (!isKnown || !stage.envelopes?.includes(label.kind)) {
      refuse("envelope-refused", "Its label has an unknown sender, stage or kind.");
    }
    const spec = this.#spec(stage, "envelope", label.kind);
    const bound = this.#bind(context, label, label.peer, this.#slot);
    const peer = context.member(label.peer).keys;
    const content = await openEnvelope(sealed, bound, context.keys, peer);
    return { peer: label.peer, content: decodeMessage(spec, content) };
  }

  async #seal(
    context: PartyContext,
    stage: Stage,
    { peer, content }: PeerMessage,
  ): Promise<Envelope> {
    const label: EnvelopeLabel = {
      stage: stage.name,
      round: context.round,
      attempt: context.attempt,
      peer,
      kind: content.kind,
    };
    const written = writeMessage(this.#spec(stage, "envelope", content.kind), content);
    const bound = this.#bind(context, label, this.#slot, peer);
    const keys = context.member(peer).keys;
    return { label, sealed: await sealEnvelope(written, bound, context.keys, keys) };
  }

  #bind(
    context: PartyContext,
    label: EnvelopeLabel,
    sender: string,
    receiver: string,
  ): Binding {
    const { stage, round, attempt, kind } = label;
    const transcript = context.transcriptAt(round, attempt);
    const { session } = this.#agreement.terms;
    return { transcript, session, stage, round, attempt, sender, receiver, kind };
  }
}

function selectedRows(memory: Memory, table: Table): Table {
  const selection = memory.get(SELECTION) as Selection | undefined;
  return selection ? pickRows(table, selection.rows) : table;
}

function putSelectedBack(memory: Memory, outcome: Outcome, table: Table): Outcome {
  const selection = memory.get(SELECTION) as Selection | undefined;
  return selection ? putBack(outcome, selection.rows, table.rows.length) : outcome;
}

function remember(
  memory: Memory,
  { run }: Stage,
  more: Readonly<Record<string, unknown>>,
): Memory {
  const added = Object.entries(more).map(
    ([name, value]) => [nameInRun(name, run), value] as const,
  );
  return new Map<string, unknown>([...memory, ...added]);
}

function byRound(envelopes: readonly Envelope[]): [number, Envelope[]][] {
  const found = new Map<number, Envelope[]>();
  for (const envelope of envelopes) {
    const { round } = envelope.label;
    found.set(round, [...(found.get(round) ?? []), envelope]);
  }
  return [...found].sort(([a], [b]) => a - b);
}

/** Refuses envelopes but those of rounds since the last answer, and of void attempts. */
function checkFresh(
  journal: Journal,
  asked: number,
  round: number,
  envelopes: readonly Envelope[],
): void {
  const answered = Math.max(0, ...journal.recent.filter((each) => each < asked));
  const attempts = journal.told.filter((told) => told.round === round);
  const last = attempts.at(-1)?.attempt ?? 0;
  const isNew = answered <= round && round < asked;
  if (!isNew || envelopes.some(({ label }) => label.attempt !== last)) {
    refuse(
      "envelope-refused",
      "The envelope is older than the last answer, or belongs to a void attempt.",
    );
  }
}
