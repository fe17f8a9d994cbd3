/** Which stages pool the moments and ranges of column groups. */

import type { Stage } from "../session/contract.ts";
import { MOMENTS } from "./moments.ts";
import { RANGES } from "./ranges.ts";

/** What a session pools of each column. */
export interface Pooled {
  readonly moments: boolean;
  readonly ranges: boolean;
}

/** Ranges cannot be added up: they go by way of the first slot. */
export function poolingStages({ moments, ranges }: Pooled): readonly Stage[] {
  return [...(moments ? [MOMENTS] : []), ...(ranges ? [RANGES] : [])];
}
