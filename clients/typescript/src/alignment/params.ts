/** How the rows of a row group come together, as terms say it. */

import { paramsOf, type Terms } from "../roster/terms.ts";
import { refuse } from "../wire/problems.ts";

export interface Alignment {
  readonly method: "declared" | "position" | "ecdh";
  readonly normalisation: readonly string[];
  readonly duplicates: "error" | "first";
  readonly minimumOverlap: number;
}

interface Given {
  readonly method?: Alignment["method"];
  readonly normalisation?: readonly string[];
  readonly duplicates?: Alignment["duplicates"];
  readonly minimum_overlap?: number;
  readonly minimum_share?: number;
}

const SPOKEN = new Set([
  ...["method", "normalisation", "duplicates", "minimum_overlap", "minimum_share"],
]);
const METHODS = ["declared", "position", "ecdh"];

/** The alignment of terms; refuses what this client does not speak. */
export function readAlignment(terms: Terms): Alignment {
  // the analyst checked their form, and the coordinator signed them
  const given = (paramsOf(terms)["alignment"] ?? {}) as Given;
  const method = given.method ?? "declared";
  const unknown = Object.keys(given).filter((name) => !SPOKEN.has(name));
  if (unknown.length || !METHODS.includes(method)) {
    const what = [...unknown, method].join(", ");
    refuse("invalid-parameters", `This client does not speak: alignment ${what}.`);
  }
  return {
    method,
    normalisation: given.normalisation ?? ["nfkc", "casefold", "spaces", "strip"],
    duplicates: given.duplicates ?? "error",
    minimumOverlap: given.minimum_overlap ?? 1,
  };
}
