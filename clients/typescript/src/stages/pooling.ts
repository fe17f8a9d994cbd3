/** Which stages pool the moments of column groups: sums of three parties and more. */

import type { Agreement } from "../roster/roster.ts";
import { audiences, groupOf } from "../roster/terms.ts";
import type { Stage } from "../session/contract.ts";
import { momentsStage } from "./moments.ts";
import type { Pooled } from "./pooled.ts";
import { statisticsStage } from "./statistics.ts";

const LEAST_MEMBERS = 3;

/** Ranges cannot be added up: they go by way of the first slot, with what is asked. */
export function poolingStages(
  { terms }: Agreement,
  slot: string,
  asked: Pooled,
): readonly Stage[] {
  if (asked.ranges) return [statisticsStage(asked, true)];
  if (!asked.moments) return [];
  const sizes = audiences(terms, "column").map((group) => group.length);
  const own = groupOf(terms, slot, "column").length;
  const stages: Stage[] = [];
  if (sizes.some(addsUp)) stages.push(momentsStage(addsUp(own)));
  if (!sizes.every(addsUp)) stages.push(statisticsStage(asked, !addsUp(own)));
  return stages;
}

function addsUp(size: number): boolean {
  return size >= LEAST_MEMBERS;
}
