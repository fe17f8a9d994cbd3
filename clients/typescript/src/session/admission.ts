/** A party checks whether a task, or a result, may come now. */

import type { Agreement } from "../roster/roster.ts";
import { audiences, type Audience } from "../roster/terms.ts";
import { hexDigest } from "../wire/bytes.ts";
import type { Packet } from "../wire/packets.ts";
import { Problem, refuse } from "../wire/problems.ts";
import type { Exchange, Stage } from "./contract.ts";
import {
  appendEntries,
  recordAnswer,
  transcriptAt,
  transcriptOf,
  type Journal,
} from "./journal.ts";
import { CLOSING, checkSignatures, OPENING } from "./signatures.ts";
import { followTranscript, lastEntry, type Entry } from "./transcript.ts";

const MAX_ATTEMPTS = 5;

/** The one field in which attempts of a round may differ. */
const SHRINKING = "members";

export class Admission {
  constructor(
    private readonly agreement: Agreement,
    private readonly slot: string,
    private readonly stages: readonly Stage[],
    private readonly signers: number,
  ) {}

  /**
   * The journal after the lines of a packet's transcript.
   *
   * @param acknowledged whether the analyst has acknowledged the last answer: it then
   *   cannot say that this party was absent
   */
  follow(journal: Journal, packet: Packet, acknowledged: boolean): Journal {
    const known = { number: journal.line, digest: transcriptOf(journal) };
    const entries = followTranscript(packet.history, this.agreement.digest, known);
    const isLeftOut = (entry: Entry) =>
      entry.round === journal.round && entry.leftOut.includes(this.slot);
    if (acknowledged && entries.some(isLeftOut)) {
      refuse(
        "task-refused",
        "The analyst left this party out of a round that it answered.",
      );
    }
    return appendEntries(journal, entries);
  }

  /** The journal after a task; `task-refused` if it may not follow. */
  admit(journal: Journal, asked: Packet): Journal {
    this.checkTask(asked);
    const { round, attempt } = asked.address;
    if (attempt > MAX_ATTEMPTS) {
      refuse("task-refused", `A round has at most ${MAX_ATTEMPTS} attempts.`);
    }
    if (round === journal.round) return this.nextAttempt(journal, asked);
    if (journal.stage === 0) {
      const opened = transcriptAt(journal.told, journal.round, journal.attempt);
      this.checkSigned(OPENING, opened, asked, this.agreement.roster.length);
    }
    return this.nextRound(journal, asked);
  }

  /** Refuses a result that was not signed, or comes before every task was answered. */
  checkResult(journal: Journal, result: Packet): void {
    const last = this.stages.length - 1;
    const closing = this.stages[last]!;
    this.checkSkipped(journal, [last, closing.exchanges.length]);
    const transcript = transcriptOf(journal);
    this.checkSigned(CLOSING, transcript, result, this.signers);
    checkOwn(result, []);
    const told = this.entryOf(result).told.slice(1); // the task first
    this.checkTold(told, closing.resultsTo ?? "all", result.contentDigest);
  }

  private checkSigned(
    stage: string,
    transcript: string,
    { signatures }: Packet,
    least: number,
  ): void {
    const { roster } = this.agreement;
    const keys = Object.fromEntries(
      roster.map(({ slot, keys }) => [slot, keys.ed25519]),
    );
    checkSignatures(keys, stage, transcript, signatures, least);
  }

  private checkTask(asked: Packet): void {
    const entry = this.entryOf(asked);
    const kind = kindOf(asked);
    if (entry.asks !== kind || entry.leftOut.includes(this.slot)) {
      refuse("task-refused", "The analyst announced a different task.");
    }
    const [stage, exchange] = this.placeOf(asked);
    const declared = this.stages[stage]!.exchanges[exchange]!;
    checkOwn(asked, declared.own ?? []);
    this.checkTold(entry.told, declared.audience ?? "all", asked.contentDigest);
  }

  private entryOf(packet: Packet): Entry {
    const entry = lastEntry(packet.history, this.agreement.digest);
    const { stage, round, attempt } = packet.address;
    if (entry.stage !== stage || entry.round !== round || entry.attempt !== attempt) {
      refuse("task-refused", "The analyst announced a different round.");
    }
    return entry;
  }

  private checkTold(told: readonly string[], audience: Audience, digest: string): void {
    const groups = audiences(this.agreement.terms, audience);
    const own = groups.findIndex((group) => group.includes(this.slot));
    if (told[own] !== digest)
      refuse("task-refused", "Others received a different task.");
  }

  private nextAttempt(journal: Journal, asked: Packet): Journal {
    const members = membersOf(asked);
    const known = members.every((member) => journal.members.includes(member));
    const isSameStage = this.stages[journal.stage]?.name === asked.address.stage;
    if (!isSameStage || digestOf(asked) !== journal.asked || !known) {
      refuse("task-refused", "The task differs from the earlier attempt of its round.");
    }
    return { ...journal, attempt: asked.address.attempt, members };
  }

  private nextRound(journal: Journal, asked: Packet): Journal {
    const kind = kindOf(asked);
    const [stage, exchange] = this.placeOf(asked);
    if (isBefore([stage, exchange], [journal.stage, journal.exchange])) {
      refuse("task-refused", `'${kind}' comes after a task that must follow it.`);
    }
    this.checkSkipped(journal, [stage, exchange]);
    const answered = stage === journal.stage ? { ...journal.answered } : {};
    answered[kind] = (answered[kind] ?? 0) + 1;
    const { most = 1 } = this.stages[stage]!.exchanges[exchange]!;
    if (answered[kind] > most) {
      refuse("task-refused", `'${kind}' came more than ${most} times.`);
    }
    return recordAnswer(journal, asked.address, {
      stage,
      exchange,
      answered,
      asked: digestOf(asked),
      members: membersOf(asked),
    });
  }

  private placeOf(asked: Packet): [number, number] {
    const stage = this.stages.findIndex(({ name }) => name === asked.address.stage);
    const exchanges = this.stages[stage]?.exchanges ?? [];
    const exchange = exchanges.findIndex(({ task }) => task === kindOf(asked));
    if (exchange < 0) {
      throw new Problem(
        "malformed",
        "A task of that kind has no place in this session.",
      );
    }
    return [stage, exchange];
  }

  private checkSkipped(journal: Journal, place: readonly [number, number]): void {
    const here = [journal.stage, journal.exchange] as const;
    this.stages.forEach((stage, number) => {
      stage.exchanges.forEach((exchange, index) => {
        const between =
          !isBefore([number, index], here) && isBefore([number, index], place);
        const given = number === journal.stage ? journal.answered : {};
        if (between && (given[exchange.task] ?? 0) < leastOf(exchange)) {
          refuse("task-refused", `The analyst left out '${exchange.task}'.`);
        }
      });
    });
  }
}

function leastOf(exchange: Exchange): number {
  return exchange.least ?? 1;
}

function isBefore(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

export function kindOf(packet: Packet): string {
  return String(packet.record.header["kind"]);
}

function membersOf(asked: Packet): readonly string[] {
  const values = asked.record.header["values"] as Record<string, unknown> | undefined;
  const members = values?.[SHRINKING];
  return Array.isArray(members) ? members.map(String) : [];
}

/** A digest of a task without its address and members; it never leaves. */
function digestOf(asked: Packet): string {
  const { header, arrays } = asked.record;
  const values = { ...(header["values"] as object), [SHRINKING]: null };
  const data = Object.entries(arrays).map(([name, { shape, data }]) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return [name, shape, hexDigest(bytes)];
  });
  const sealed = asked.envelopes.map(({ label, sealed }) => [label, hexDigest(sealed)]);
  return hexDigest(JSON.stringify([header["kind"], values, data, sealed]));
}

function checkOwn(packet: Packet, names: readonly string[]): void {
  if (packet.own.join() !== [...names].sort().join()) {
    refuse("task-refused", "The own fields of a message differ from its declaration.");
  }
}
