/** Requests to an analyst: repeated while it does not answer, refused as problems. */

import { setTimeout as sleep } from "node:timers/promises";
import { Problem } from "../wire/problems.ts";

const RETRYABLE = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const FIRST_DELAY = 0.2;
const LONGEST_DELAY = 5;
/** An attempt that sends a body counts for so many seconds of the patience at most. */
const MOST_COUNTED = 30;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: Uint8Array | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Seconds for which the request is repeated. */
  readonly patience?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export class Transport {
  readonly #url: string;
  readonly #patience: number;

  /**
   * Plain http goes to this machine alone.
   *
   * @param patience seconds for which a request is repeated
   */
  constructor(url: string, patience = 300) {
    const { protocol, hostname } = new URL(url);
    if (protocol !== "https:" && !LOOPBACK.has(hostname)) {
      throw new Problem(
        "guard-refused",
        "Plain http is allowed to this machine only: use https.",
      );
    }
    this.#url = url;
    this.#patience = patience;
  }

  /** The answer of success; throws the problem that was answered, or `unavailable`. */
  async send(request: Request): Promise<Answer> {
    let elapsed = 0;
    const patience = request.patience ?? this.#patience;
    for (let attempt = 1; ; attempt++) {
      const began = performance.now();
      const answer = await this.#ask(request);
      const took = (performance.now() - began) / 1000;
      // a large body takes its time, which is no silence of the analyst
      elapsed += request.body === undefined ? took : Math.min(took, MOST_COUNTED);
      if (answer && !RETRYABLE.has(answer.status)) return checked(answer);
      const delay = Math.max(
        Math.min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY),
        Number(answer?.headers.get("retry-after")) || 0,
      );
      if (elapsed + delay > patience) return checked(answer);
      await sleep(1000 * delay);
      elapsed += delay;
    }
  }

  async #ask(request: Request): Promise<Answer | undefined> {
    const { method, path, body, headers } = request;
    try {
      const response = await fetch(this.#url + path, {
        method,
        headers: { ...headers },
        redirect: "error",
        ...(body === undefined ? {} : { body }),
      });
      return {
        status: response.status,
        headers: response.headers,
        body: new Uint8Array(await response.arrayBuffer()),
      };
    } catch {
      return undefined;
    }
  }
}

function checked(answer: Answer | undefined): Answer {
  if (!answer) throw new Problem("unavailable", "The analyst does not answer.");
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw problemIn(answer);
}

function nameOf(type: unknown): string {
  return typeof type === "string" ? type.slice(type.lastIndexOf(":") + 1) : "internal";
}

/** The problem in a response; for a session that is over, what ended it. */
function problemIn({ status, body }: Answer): Problem {
  let document: Record<string, unknown> = {};
  try {
    document = Object(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch {
    // a page of a proxy
  }
  const { type, detail, state, reason } = document;
  return new Problem(
    typeof reason === "string" ? reason : nameOf(type),
    typeof detail === "string" ? detail : `HTTP status ${status}.`,
    typeof state === "string" ? state : undefined,
  );
}
