/** The one error of this client: a problem of the wire's closed list, and a sentence. */

export type ProblemName =
  | "agreement-mismatch"
  | "cancelled"
  | "envelope-refused"
  | "equivocation"
  | "guard-refused"
  | "internal"
  | "invalid-array"
  | "invalid-data"
  | "invalid-parameters"
  | "invitation-unreadable"
  | "key-not-authentic"
  | "malformed"
  | "not-found"
  | "not-ready"
  | "party-stopped"
  | "protocol-failed"
  | "risk-not-accepted"
  | "session-over"
  | "task-refused"
  | "unavailable"
  | "version-mismatch";

export class Problem extends Error {
  /** `type`: the name in the closed list, also of problems that the analyst answers. */
  constructor(
    readonly type: ProblemName | (string & {}),
    detail: string,
    readonly state?: string,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** Why a party stopped for good: all that others read of it. */
export type StopReason = "left" | "refused" | "data" | "software";

/** Problems after which a party answers nothing more: the analyst broke the rules. */
export const FINAL: ReadonlySet<string> = new Set<ProblemName>([
  "task-refused",
  "envelope-refused",
  "protocol-failed",
  "malformed",
  "invalid-array",
  "agreement-mismatch",
  "equivocation",
]);

export function refuse(type: ProblemName, detail: string): never {
  throw new Problem(type, detail);
}

/** An error as a problem; one that is not a problem reveals nothing of its cause. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const name = error instanceof Error ? error.name : "Error";
  return new Problem("internal", `This client failed: ${name}.`);
}
