/** Large contributions in pieces: after a cut the analyst says how far it got. */

import { setTimeout as sleep } from "node:timers/promises";
import { digest } from "../wire/bytes.ts";
import { Problem, refuse } from "../wire/problems.ts";
import type { Answer, Request } from "./transport.ts";

const LEAST_PIECE = 512 * 2 ** 10;
const LARGEST_PIECE = 32 * 2 ** 20;
const PIECES = 128;
const PASSING = new Set([
  ...["unavailable", "internal", "timeout", "too-many-requests", "storage-full"],
  ...["offset-mismatch", "not-found"],
]);

type Send = (request: Request) => Promise<Answer>;

/** A Content-Digest or Repr-Digest (RFC 9530). */
export function digestField(content: Uint8Array): string {
  return `sha-256=:${Buffer.from(digest(content)).toString("base64")}:`;
}

/**
 * The answer to the whole; undefined where the analyst takes no pieces.
 *
 * @param patience seconds without a piece that comes through, after which to give up
 */
export async function sendInPieces(
  send: Send,
  path: string,
  content: Uint8Array,
  headers: Readonly<Record<string, string>>,
  patience: number,
): Promise<Answer | undefined> {
  const upload = new Upload(send, path, content);
  let offset: number;
  try {
    offset = await upload.begin();
  } catch (error) {
    // an older release, or a proxy that knows the rest
    if (isOf(error, "not-found") || isOf(error, "internal")) return undefined;
    throw error;
  }
  for (let attempt = 0, since = performance.now(); ; attempt++) {
    try {
      return await upload.sendFrom(offset, headers);
    } catch (error) {
      if (!(error instanceof Problem) || !PASSING.has(error.type)) throw error;
      if (performance.now() - since > 1000 * patience) throw error;
    }
    const before = offset;
    offset = await upload.begin();
    if (offset > before) [attempt, since] = [-1, performance.now()];
    else await sleep(Math.min(200 * 2 ** attempt, 5000));
  }
}

class Upload {
  readonly #send: Send;
  readonly #path: string;
  readonly #content: Uint8Array;
  #piece: number;

  constructor(send: Send, path: string, content: Uint8Array) {
    this.#send = send;
    this.#path = path;
    this.#content = content;
    const share = Math.ceil(content.length / PIECES);
    this.#piece = Math.min(Math.max(share, LEAST_PIECE), LARGEST_PIECE);
  }

  /** Begins, or asks how far it got: the same request, however often. */
  async begin(): Promise<number> {
    const { headers } = await this.#send({
      method: "PUT",
      path: this.#path,
      headers: {
        "Upload-Complete": "?0",
        "Upload-Length": String(this.#content.length),
        "Repr-Digest": digestField(this.#content),
      },
    });
    const limit = /max-append-size=(\d+)/.exec(headers.get("upload-limit") ?? "")?.[1];
    if (limit) this.#piece = Math.min(this.#piece, Number(limit));
    const offset = Number(headers.get("upload-offset") ?? NaN);
    return Number.isSafeInteger(offset) && offset >= 0 && offset <= this.#content.length
      ? offset
      : refuse("version-mismatch", "The analyst does not say how far an upload got.");
  }

  async sendFrom(
    offset: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    let at = offset;
    while (at < this.#content.length) {
      const piece = this.#content.subarray(at, at + this.#piece);
      await this.#patch(at, piece, { "Upload-Complete": "?0" }, 0);
      at += piece.length;
    }
    return this.#patch(at, new Uint8Array(), { "Upload-Complete": "?1", ...headers });
  }

  #patch(
    offset: number,
    piece: Uint8Array,
    headers: Readonly<Record<string, string>>,
    patience?: number,
  ): Promise<Answer> {
    return this.#send({
      method: "PATCH",
      path: this.#path,
      body: piece,
      headers: {
        "Content-Type": "application/partial-upload",
        "Content-Digest": digestField(piece),
        "Upload-Offset": String(offset),
        ...headers,
      },
      ...(patience === undefined ? {} : { patience }),
    });
  }
}

function isOf(error: unknown, type: string): boolean {
  return error instanceof Problem && error.type === type;
}
