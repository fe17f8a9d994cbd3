/**
 * A party in a session, from the invitation to the labels.
 *
 * A killed process continues where it was: what it sends is on its disk first, byte for
 * byte, and everything that it asks of the analyst may be asked again.
 */

import { randomBytes } from "node:crypto";
import { arrive, putBack, type Arrival } from "./alignment/arrival.ts";
import { Analyst } from "./analyst/analyst.ts";
import { checkReceipt } from "./analyst/receipts.ts";
import { Transport } from "./analyst/transport.ts";
import { PartyFolder, type Identity } from "./home/folder.ts";
import { loadInstitution, type Institution } from "./home/institution.ts";
import { protocolOf } from "./protocols/index.ts";
import { readInvitation, type Invitation } from "./roster/invitation.ts";
import {
  checkAcceptable,
  checkPreview,
  checkSameInvitation,
  takeSlot,
} from "./roster/joining.ts";
import { enrol, readAgreement, type Agreement, type Member } from "./roster/roster.ts";
import { readShownTerms, type Terms } from "./roster/terms.ts";
import { derive } from "./secrecy/chance.ts";
import { partyKeys, safetyNumber, verifyingKey } from "./secrecy/keys.ts";
import type { Outcome, Table } from "./session/contract.ts";
import { PartyEngine } from "./session/engine.ts";
import { checkGoing } from "./session/journal.ts";
import { answerTask, stopAt, type PartyState } from "./session/state.ts";
import { digestTable } from "./table/table-digest.ts";
import { hex, unhex } from "./wire/bytes.ts";
import { asProblem, Problem, refuse } from "./wire/problems.ts";

const KEY_BYTES = 32;

export interface PartyOptions {
  /** The folder in which the party keeps its identity and its state. */
  readonly home: string;
  /** Codes of the risks that the operator accepts. */
  readonly acceptedRisks: readonly string[];
  /** 32 bytes from which all chance follows, the identity too; drawn if not given. */
  readonly entropy?: Uint8Array;
  /** The number that the other members read; another one stops this party. */
  readonly safetyNumber?: string;
  /** Called with each event, in words for people. */
  readonly onProgress?: (line: string) => void;
}

export class Party {
  readonly #invitation: Invitation;
  readonly #options: PartyOptions;
  readonly #folder: PartyFolder;
  readonly #transport: Transport;
  #identity: Identity;

  private constructor(
    invitation: Invitation,
    options: PartyOptions,
    folder: PartyFolder,
    transport: Transport,
    identity: Identity,
  ) {
    this.#invitation = invitation;
    this.#options = options;
    this.#folder = folder;
    this.#transport = transport;
    this.#identity = identity;
  }

  /**
   * Reads what an invitation is for, checks it, and remembers it.
   *
   * Throws Problem: `risk-not-accepted`, `agreement-mismatch` and others, before
   * anything of the data is known to the analyst.
   */
  static async join(invitation: string, options: PartyOptions): Promise<Party> {
    const parsed = readInvitation(invitation);
    const folder = new PartyFolder(options.home, parsed.session, parsed.slot);
    const transport = new Transport(parsed.url);
    const known = folder.loadIdentity();
    if (known) {
      checkSameInvitation(readInvitation(known.invitation), parsed);
      return new Party(parsed, options, folder, transport, known);
    }
    const analyst = new Analyst(transport, parsed.session);
    const terms = checkPreview(await analyst.preview(parsed.code), parsed);
    checkAcceptable(terms, options.acceptedRisks);
    const entropy = options.entropy ?? randomBytes(KEY_BYTES);
    const identity = { invitation, entropy: hex(entropy), terms: terms.text };
    folder.saveIdentity(identity);
    return new Party(parsed, options, folder, transport, identity);
  }

  get terms(): Terms {
    return readShownTerms(this.#identity.terms, this.#invitation);
  }

  /** Takes part until there are labels; the same rows go on where they were. */
  async run(table: Table): Promise<Outcome> {
    const unlock = this.#folder.lock();
    try {
      const arrived = this.#arrive(table);
      await this.#enrol(arrived.table);
      const outcome = await this.#toTheEnd(arrived.table);
      return putBack(outcome, arrived.rows, table.rows.length);
    } catch (error) {
      await this.#tellStop();
      throw error;
    } finally {
      unlock();
    }
  }

  /**
   * Tells the others, once, that this party stopped for good; what stopped it is thrown
   * whether that succeeds or not, and the next start tells them then.
   */
  async #tellStop(): Promise<void> {
    const { stopped } = this.#folder.loadState().journal;
    if (!stopped || !this.#identity.token || this.#folder.hasToldStop()) return;
    try {
      await this.#analyst.stop("refused");
    } catch (error) {
      if (asProblem(error).state === undefined) return; // else nobody waits any more
    }
    this.#folder.noteToldStop();
  }

  #arrive(table: Table): Arrival {
    const { terms } = this;
    const { alignment } = protocolOf(terms);
    return arrive(table, terms, this.#invitation.slot, alignment);
  }

  get #analyst(): Analyst {
    return new Analyst(this.#transport, this.#invitation.session, this.#identity.token);
  }

  get #entropy(): Uint8Array {
    return unhex(this.#identity.entropy);
  }

  get #institution(): Institution {
    const { entropy, home } = this.#options;
    return entropy
      ? { name: "", key: derive(entropy, ["coterie/identity/1"]) }
      : loadInstitution(home);
  }

  async #enrol(table: Table): Promise<void> {
    const digest = digestTable(table);
    if (this.#identity.tableDigest && this.#identity.tableDigest !== digest) {
      refuse(
        "guard-refused",
        "This party joined with other rows: bring that table again.",
      );
    }
    if (this.#identity.token) return;
    const { terms } = this;
    if (table.rows.length < terms.guards.minimum_rows) {
      refuse(
        "guard-refused",
        `The terms ask for ${terms.guards.minimum_rows} rows; here are fewer.`,
      );
    }
    const member = this.#identity.member ?? this.#makeMember(table);
    this.#keep({ member, tableDigest: digest });
    const { session, slot, code } = this.#invitation;
    const { signing } = partyKeys(this.#entropy, session, slot);
    const analyst = new Analyst(this.#transport, session);
    this.#keep({ token: await takeSlot(analyst, terms, member, code, signing) });
  }

  #makeMember(table: Table): Member {
    const { name, key } = this.#institution;
    const { session, slot, secret } = this.#invitation;
    const line = {
      slot,
      n_rows: table.rows.length,
      n_columns: table.columns.length,
      keys: partyKeys(this.#entropy, session, slot).public,
      institution: name,
      identity: verifyingKey(key),
    };
    return enrol(this.terms, secret, line, key);
  }

  async #toTheEnd(table: Table): Promise<Outcome> {
    const agreement = await this.#agreement();
    const { slot } = this.#invitation;
    const protocol = protocolOf(agreement.terms);
    const engine = new PartyEngine(agreement, slot, this.#entropy, protocol);
    const kept = this.#folder.loadResult();
    if (kept) return this.#conclude(engine, kept, table);
    checkGoing(this.#folder.loadState().journal);
    let task = await this.#sendAgain();
    for (;;) {
      try {
        task ??= await this.#analyst.task();
      } catch (error) {
        if (!isCompleted(error)) throw error;
        return this.#conclude(engine, await this.#analyst.result(), table);
      }
      if (task) task = await this.#answer(engine, task, table);
    }
  }

  /** The agreement, once all have joined; kept as it was checked first. */
  async #agreement(): Promise<Agreement> {
    const kept = this.#folder.loadAgreement();
    const bytes = kept ?? (await this.#awaitAgreement());
    const { secret } = this.#invitation;
    const agreement = readAgreement(bytes, this.terms, secret, this.#identity.member!);
    if (!kept) {
      this.#checkNumber(safetyNumber(bytes));
      this.#folder.saveAgreement(bytes);
    }
    return agreement;
  }

  async #awaitAgreement(): Promise<Uint8Array> {
    for (;;) {
      try {
        return await this.#analyst.agreement();
      } catch (error) {
        if (asProblem(error).type !== "not-ready") throw error;
      }
      await this.#analyst.task(); // waits until all have joined
    }
  }

  #checkNumber(number: string): void {
    const told = this.#options.safetyNumber;
    this.#say(`The safety number is ${number}.`);
    if (
      told !== undefined &&
      told.replaceAll(/\s/g, "") !== number.replaceAll(" ", "")
    ) {
      refuse(
        "key-not-authentic",
        "The others see another safety number: ask them, and leave the session.",
      );
    }
  }

  /** Sends again what has no receipt after a crash or a lost answer. */
  async #sendAgain(): Promise<Uint8Array | undefined> {
    const { journal, contribution } = this.#folder.loadState();
    const isSent = !journal.round || this.#folder.hasReceipt(contribution);
    return isSent ? undefined : this.#send(this.#folder.loadState());
  }

  /** The task that follows an answer, if there is one already. */
  async #answer(
    engine: PartyEngine,
    task: Uint8Array,
    table: Table,
  ): Promise<Uint8Array | undefined> {
    const last = this.#folder.loadState();
    const acknowledged = this.#folder.hasReceipt(last.contribution);
    try {
      const state = await answerTask(engine, last, task, table, acknowledged);
      this.#folder.saveState(state);
      const { round } = state.journal;
      this.#say(`Round ${round}: ${state.contribution.length} bytes.`);
      return await this.#send(state);
    } catch (error) {
      this.#folder.saveState(stopAt(error, this.#folder.loadState()));
      throw error;
    }
  }

  async #send({ journal, contribution }: PartyState): Promise<Uint8Array | undefined> {
    const { round, attempt } = journal;
    try {
      const sent = await this.#analyst.contribute(round, attempt, contribution);
      checkReceipt(sent.receipt, contribution, this.terms.identities?.analyst);
      this.#folder.keepReceipt(sent.receipt);
      return sent.task;
    } catch (error) {
      if (isCompleted(error)) return undefined;
      if (asProblem(error).type !== "round-closed") throw error;
      const status = await this.#analyst.status();
      const isOpen = status.round === round && status.attempt === attempt;
      if (status.state === "collecting" && isOpen) throw error;
      return undefined; // the round went on without this answer
    }
  }

  #conclude(engine: PartyEngine, result: Uint8Array, table: Table): Outcome {
    const state = this.#folder.loadState();
    const acknowledged = this.#folder.hasReceipt(state.contribution);
    const standing = { journal: state.journal, memory: state.after };
    try {
      const outcome = engine.conclude(standing, result, table, acknowledged);
      this.#folder.saveResult(result);
      this.#keep({ entropy: "" }); // what was sent and got can no longer be opened
      return outcome;
    } catch (error) {
      this.#folder.saveState(stopAt(error, state));
      throw error;
    }
  }

  #keep(changes: Partial<Identity>): void {
    this.#identity = { ...this.#identity, ...changes };
    this.#folder.saveIdentity(this.#identity);
  }

  #say(line: string): void {
    this.#options.onProgress?.(line);
  }
}

function isCompleted(error: unknown): boolean {
  return (
    error instanceof Problem &&
    error.type === "session-over" &&
    error.state === "completed"
  );
}
