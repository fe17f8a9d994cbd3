/** Calls of recorded sessions: the program plays one party, the harness the analyst. */

import { arrive, putBack, type Arrival } from "../src/alignment/arrival.ts";
import { protocolOf } from "../src/protocols/index.ts";
import { readInvitation } from "../src/roster/invitation.ts";
import { readAgreement, type Member } from "../src/roster/roster.ts";
import { readShownTerms } from "../src/roster/terms.ts";
import type { Table } from "../src/session/contract.ts";
import { PartyEngine } from "../src/session/engine.ts";
import {
  answerTask,
  NOTHING_ANSWERED,
  stopAt,
  type PartyState,
} from "../src/session/state.ts";
import { utf8 } from "../src/wire/bytes.ts";
import { refuse } from "../src/wire/problems.ts";
import { bytesIn, textIn, type Call, type Input } from "./inputs.ts";

interface GivenTable {
  readonly columns: readonly string[];
  readonly ids: readonly string[] | null;
  readonly rows: readonly (readonly number[])[];
}

/** What the analyst is told of, it has acknowledged. */
const ACKNOWLEDGED = true;

class PassiveParty {
  readonly #engine: PartyEngine;
  readonly #arrival: Arrival;
  readonly #size: number;
  #state: PartyState = NOTHING_ANSWERED;

  constructor(given: Input) {
    const slot = textIn(given, "slot");
    const invitation = readInvitation(textIn(given, "invitation"));
    const terms = readShownTerms(textIn(given, "terms"), invitation);
    const bytes = utf8(textIn(given, "agreement"));
    const own = given["own"] as Member;
    const agreement = readAgreement(bytes, terms, invitation.secret, own);
    const protocol = protocolOf(terms);
    const table = tableIn(given["table"] as GivenTable);
    this.#engine = new PartyEngine(
      agreement,
      slot,
      bytesIn(given, "entropy"),
      protocol,
    );
    this.#arrival = arrive(table, terms, slot, protocol.alignment);
    this.#size = table.rows.length;
  }

  async step(task: Uint8Array): Promise<Uint8Array> {
    try {
      const fixed = [this.#engine, this.#state, task, this.#arrival.table] as const;
      this.#state = await answerTask(...fixed, ACKNOWLEDGED);
      return this.#state.contribution;
    } catch (error) {
      this.#state = stopAt(error, this.#state);
      throw error;
    }
  }

  conclude(result: Uint8Array): readonly number[] {
    const { journal, after: memory } = this.#state;
    const { table, rows } = this.#arrival;
    try {
      const found = this.#engine.conclude(
        ...([{ journal, memory }, result, table, ACKNOWLEDGED] as const),
      );
      return putBack(found, rows, this.#size).labels;
    } catch (error) {
      this.#state = stopAt(error, this.#state);
      throw error;
    }
  }
}

let party: PassiveParty | undefined;

export const SESSIONS: Readonly<Record<string, Call>> = {
  init(given) {
    party = undefined;
    party = new PassiveParty(given);
    return {};
  },
  async step(given) {
    const contribution = await current().step(packetIn(given, "task"));
    return { contribution: Buffer.from(contribution).toString("base64") };
  },
  conclude: (given) => ({ labels: current().conclude(packetIn(given, "result")) }),
};

function current(): PassiveParty {
  return party ?? refuse("not-ready", "No session has begun.");
}

function packetIn(given: Input, name: string): Uint8Array {
  return new Uint8Array(Buffer.from(textIn(given, name), "base64"));
}

function tableIn({ columns, ids, rows }: GivenTable): Table {
  const table = { columns, rows: rows.map((row) => Float64Array.from(row)) };
  return ids ? { ...table, ids } : table;
}
