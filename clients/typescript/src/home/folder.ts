/** A party's folder of one session: its identity, its state and its receipts. */

import path from "node:path";
import { deserialize, serialize } from "node:v8";
import type { Member } from "../roster/roster.ts";
import { hexDigest, textOf } from "../wire/bytes.ts";
import { Problem } from "../wire/problems.ts";
import { NOTHING_ANSWERED, type PartyState } from "../session/state.ts";
import type { Receipt } from "../analyst/receipts.ts";
import { makeFolder, readIfThere, writeDurably } from "./durable-files.ts";
import { takeLock } from "./lock.ts";

/** Who a party is; `tableDigest` binds it to the rows with which it joined. */
export interface Identity {
  readonly invitation: string;
  /** 32 bytes (hex) from which all private draws follow. */
  readonly entropy: string;
  readonly terms: string;
  readonly member?: Member;
  readonly tableDigest?: string;
  readonly token?: string;
}

const FORMAT = 2;

export class PartyFolder {
  readonly #folder: string;

  constructor(home: string, session: string, slot: string) {
    this.#folder = path.join(home, "parties", session, slot);
    makeFolder(this.#folder);
  }

  lock(): () => void {
    return takeLock(this.#path("lock"));
  }

  loadIdentity(): Identity | undefined {
    const found = readIfThere(this.#path("identity.json"));
    return found && (JSON.parse(textOf(found)) as Identity);
  }

  saveIdentity(identity: Identity): void {
    writeDurably(this.#path("identity.json"), JSON.stringify(identity));
  }

  loadAgreement(): Uint8Array | undefined {
    return readIfThere(this.#path("agreement.json"));
  }

  saveAgreement(agreement: Uint8Array): void {
    writeDurably(this.#path("agreement.json"), agreement);
  }

  /** The stored state of the party; its first state if none is stored. */
  loadState(): PartyState {
    const found = readIfThere(this.#path("state"));
    if (!found) return NOTHING_ANSWERED;
    const kept = deserialize(found) as { format: number; state: PartyState };
    if (kept.format !== FORMAT) {
      throw new Problem(
        "not-ready",
        "The state was written by another release of this client.",
      );
    }
    return kept.state;
  }

  saveState(state: PartyState): void {
    writeDurably(this.#path("state"), serialize({ format: FORMAT, state }));
  }

  /** Whether the analyst knows that the party stopped for good. */
  hasToldStop(): boolean {
    return readIfThere(this.#path("told-stop")) !== undefined;
  }

  noteToldStop(): void {
    writeDurably(this.#path("told-stop"), "");
  }

  loadResult(): Uint8Array | undefined {
    return readIfThere(this.#path("result"));
  }

  saveResult(result: Uint8Array): void {
    writeDurably(this.#path("result"), result);
  }

  /** Keeps a receipt; throws `equivocation` where an earlier one says otherwise. */
  keepReceipt(receipt: Receipt): void {
    const kept = this.#receipts();
    const known = kept.find(
      ({ round, attempt }) => round === receipt.round && attempt === receipt.attempt,
    );
    if (known && JSON.stringify(known) !== JSON.stringify(receipt)) {
      throw new Problem("equivocation", "Two receipts of one contribution differ.");
    }
    if (!known) {
      writeDurably(this.#path("receipts.json"), JSON.stringify([...kept, receipt]));
    }
  }

  hasReceipt(contribution: Uint8Array): boolean {
    const digest = hexDigest(contribution);
    return this.#receipts().some((receipt) => receipt.digest === digest);
  }

  #receipts(): readonly Receipt[] {
    const found = readIfThere(this.#path("receipts.json"));
    return found ? (JSON.parse(textOf(found)) as Receipt[]) : [];
  }

  #path(name: string): string {
    return path.join(this.#folder, name);
  }
}
