/** How the rows of a row group come together, as terms say it. */

import { checkParams } from "../protocols/params.ts";
import { paramsOf, type Terms } from "../roster/terms.ts";
import { readMatchKey, type MatchKey } from "./match-keys/match-key.ts";

export interface Alignment {
  readonly method: "declared" | "position" | "ecdh";
  readonly normalisation: readonly string[];
  readonly duplicates: "error" | "first";
  readonly minimumOverlap: number;
  /** With `ecdh`: the keys that rows are matched by; empty if by ids. */
  readonly matchKeys: readonly MatchKey[];
  /** The least share of the values of a key that name one row alone. */
  readonly keyUniqueness: number;
}

interface Given {
  readonly method?: Alignment["method"];
  readonly normalisation?: readonly string[];
  readonly duplicates?: Alignment["duplicates"];
  readonly minimum_overlap?: number;
  readonly match_keys?: readonly string[];
  readonly key_uniqueness?: number;
}

const SPOKEN = {
  method: ["declared", "position", "ecdh"],
  normalisation: "any",
  duplicates: ["error", "first"],
  minimum_overlap: "any",
  // two questions to an operator, which this client does not ask
  id_patterns: "any",
  minimum_share: "any",
  match_keys: "any",
  key_uniqueness: "any",
} as const;

/** The alignment of terms; refuses one that this client does not support. */
export function readAlignment(terms: Terms): Alignment {
  // the analyst checked their form, and the coordinator signed them
  const given = (paramsOf(terms)["alignment"] ?? {}) as Given;
  checkParams({ ...given }, SPOKEN);
  return {
    method: given.method ?? "declared",
    normalisation: given.normalisation ?? ["nfkc", "casefold", "spaces", "strip"],
    duplicates: given.duplicates ?? "error",
    minimumOverlap: given.minimum_overlap ?? 1,
    matchKeys: (given.match_keys ?? []).map(readMatchKey),
    keyUniqueness: given.key_uniqueness ?? 0.8,
  };
}
