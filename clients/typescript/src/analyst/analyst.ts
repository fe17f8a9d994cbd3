/** The analyst's calls for a party. */

import type { Member } from "../roster/roster.ts";
import { digest, textOf } from "../wire/bytes.ts";
import { MEDIA_TYPE } from "../wire/codec.ts";
import type { StopReason } from "../wire/problems.ts";
import { RECEIPT_HEADER, receiptInHeader, type Receipt } from "./receipts.ts";
import { Transport, type Answer, type Request } from "./transport.ts";

const LONG_POLL_SECONDS = 25;
/** An operator waits to read why the party stopped. */
const STOP_PATIENCE_SECONDS = 10;
const JSON_HEADERS = { "Content-Type": "application/json" };

/** The session of an invitation. `joins`: how often the slot was joined so far. */
export interface Preview {
  readonly session: string;
  readonly slot: string;
  readonly terms: string;
  readonly joins: number;
}

/** A receipt, and the next task where there is one already. */
export interface Contributed {
  readonly receipt: Receipt;
  readonly task: Uint8Array | undefined;
}

export class Analyst {
  readonly #transport: Transport;
  readonly #session: string;
  readonly #token: string | undefined;

  /** `token`: of a party that has joined. */
  constructor(transport: Transport, session: string, token?: string) {
    this.#transport = transport;
    this.#session = `/v1/sessions/${session}`;
    this.#token = token;
  }

  async preview(code: string): Promise<Preview> {
    return read(await this.#post("/v1/join/preview", { code }));
  }

  /** The token of the party that takes the slot of a code. */
  async join(code: string, member: Member, proof: string): Promise<string> {
    const answer = await this.#post("/v1/join", { code, member, proof });
    return read<{ token: string }>(answer).token;
  }

  /** Says that this party stopped for good; the same again changes nothing. */
  async stop(reason: StopReason): Promise<void> {
    const path = `${this.#session}/stopped`;
    await this.#post(path, { reason }, STOP_PATIENCE_SECONDS);
  }

  /** The exact bytes of the agreement. */
  async agreement(): Promise<Uint8Array> {
    return (await this.#get("/agreement")).body;
  }

  /** The open task; undefined if none arrived while the analyst waited. */
  async task(): Promise<Uint8Array | undefined> {
    const { status, body } = await this.#get(`/task?wait=${LONG_POLL_SECONDS}`);
    return status === 200 ? body : undefined;
  }

  async result(): Promise<Uint8Array> {
    return (await this.#get("/result")).body;
  }

  /** The state of the session. */
  async status(): Promise<{ state: string; round: number; attempt: number }> {
    return read(await this.#get(""));
  }

  async contribute(
    round: number,
    attempt: number,
    content: Uint8Array,
  ): Promise<Contributed> {
    const path = `${this.#session}/rounds/${round}/attempts/${attempt}/contribution`;
    const headers = {
      "Content-Type": MEDIA_TYPE,
      "Content-Digest": digestField(content),
      Prefer: `wait=${LONG_POLL_SECONDS}`,
    };
    const answer = await this.#send({ method: "PUT", path, body: content, headers });
    const header = answer.headers.get(RECEIPT_HEADER);
    if (header === null) return { receipt: read(answer), task: undefined };
    const task = answer.body.length ? answer.body : undefined;
    return { receipt: receiptInHeader(header), task };
  }

  #post(path: string, value: object, patience?: number): Promise<Answer> {
    const body = JSON.stringify(value);
    const limit = patience === undefined ? {} : { patience };
    return this.#send({ method: "POST", path, body, headers: JSON_HEADERS, ...limit });
  }

  #get(path: string): Promise<Answer> {
    return this.#send({ method: "GET", path: this.#session + path });
  }

  #send(request: Request): Promise<Answer> {
    if (this.#token === undefined) return this.#transport.send(request);
    const headers = { ...request.headers, Authorization: `Bearer ${this.#token}` };
    return this.#transport.send({ ...request, headers });
  }
}

/** A Content-Digest (RFC 9530). */
function digestField(content: Uint8Array): string {
  return `sha-256=:${Buffer.from(digest(content)).toString("base64")}:`;
}

function read<T>({ body }: Answer): T {
  return JSON.parse(textOf(body)) as T;
}
