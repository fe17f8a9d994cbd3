/** Coordinates that rounding alone sets apart are made equal, the same at all parties. */

import type { Points } from "./points.ts";

const COINCIDENCE = 1e-11;

/**
 * Points whose coordinates, neighbours by size within 1e-11 units, are those of the
 * lowest point of such a run.
 */
export function equaliseCoordinates(points: Points, units: Float64Array): Points {
  const equal = points.map((point) => point.slice());
  units.forEach((unit, feature) => {
    const at = (number: number) => points[number]![feature]!;
    const order = points.map((_, number) => number).sort((a, b) => at(a) - at(b));
    for (const run of runsOf(order, at, COINCIDENCE * unit)) {
      const lowest = at(Math.min(...run));
      for (const number of run) equal[number]![feature] = lowest;
    }
  });
  return equal;
}

function runsOf(
  order: readonly number[],
  at: (number: number) => number,
  apart: number,
): number[][] {
  const runs: number[][] = [];
  order.forEach((number, place) => {
    const isNext = place > 0 && at(number) - at(order[place - 1]!) <= apart;
    if (isNext) runs.at(-1)!.push(number);
    else runs.push([number]);
  });
  return runs;
}

/** How many points equal one of a lower number. */
export function countCoinciding(points: Points): number {
  return points.length - new Set(points.map((point) => point.join())).size;
}
