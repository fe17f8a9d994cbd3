/** Parameters of terms: those that a client knows, and the values that it supports. */

import { refuse } from "../wire/problems.ts";

/** What to do if the terms need more than this client supports. */
export const INSTEAD =
  "Take part with 'coterie party run', or ask the coordinator for other terms.";

/** Any value, or one of these. */
type Known = "any" | readonly unknown[];

/** Refuses unknown parameters, and values that this client does not support. */
export function checkParams(
  params: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, Known>>,
): void {
  const unknown = Object.entries(params).filter(([name, value]) => {
    const allowed = Object.hasOwn(known, name) ? known[name]! : [];
    return allowed !== "any" && !allowed.includes(value);
  });
  if (unknown.length) {
    const names = unknown.map(([name, value]) => `${name} ${JSON.stringify(value)}`);
    refuse(
      "invalid-parameters",
      `This client does not support: ${names.join(", ")}. ${INSTEAD}`,
    );
  }
}
