/** Parameters of terms: those that a client knows, in the values that it speaks. */

import { refuse } from "../wire/problems.ts";

/** What helps where terms ask for what this client does not have. */
export const INSTEAD =
  "Take part with 'coterie party run', or ask the coordinator for other terms.";

/** Any value, or one of these. */
type Known = "any" | readonly unknown[];

/** Refuses parameters that this client does not know, and values that it does not speak. */
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
      `This client does not speak: ${names.join(", ")}. ${INSTEAD}`,
    );
  }
}
