/** Which stages pool the moments and ranges of column groups. */

import type { Agreement } from "../roster/roster.ts";
import { groupOf } from "../roster/terms.ts";
import type { Stage } from "../session/contract.ts";
import { MOMENTS } from "./moments.ts";
import { RANGES } from "./ranges.ts";

/** What a session pools of each column. */
export interface Pooled {
  readonly moments: boolean;
  readonly ranges: boolean;
}

/** Ranges cannot be added up: they go by way of the first slot. */
export function poolingStages(
  { moments, ranges }: Pooled,
  { terms }: Agreement,
  slot: string,
): readonly Stage[] {
  const isAlone = groupOf(terms, slot, "column").length === 1; // nobody asks it for sums
  return [...(moments && !isAlone ? [MOMENTS] : []), ...(ranges ? [RANGES] : [])];
}
