/** Degrees of rows in clusters, and the exponent that fits the size of a table. */

import { squaredDistance, type Point, type Points } from "../../numerics/points.ts";
import { sumOf } from "../../stages/pooled.ts";

const [LEAST, MOST] = [1.1, 2];

/** The degrees of a row in all clusters, and its squared distances to their centroids. */
export interface Degrees {
  readonly degrees: readonly number[];
  readonly squares: readonly number[];
}

/** By ratios to the least distance: a row on a centroid belongs to it alone. */
export function degreesOf(row: Point, centroids: Points, fuzzifier: number): Degrees {
  const squares = centroids.map((centroid) => squaredDistance(row, centroid));
  const least = Math.min(...squares);
  const exponent = 1 / (fuzzifier - 1);
  const near = squares.map((square) => {
    const ratio = square === least ? 1 : least / square;
    return exponent === 1 ? ratio : ratio ** exponent;
  });
  const total = sumOf(near);
  return { degrees: near.map((each) => each / total), squares };
}

/** A degree to the power λ. */
export function raised(degree: number, fuzzifier: number): number {
  return fuzzifier === 2 ? degree * degree : degree ** fuzzifier;
}

/** λ at which rows without clusters just show none (Schwämmle and Jensen, 2010). */
export function exponentBySize(rows: number, columns: number): number {
  const ofRows = (1418 / rows + 22.05) / (columns * columns);
  const power = -0.0406 * Math.log(rows) - 0.1134;
  const beside = (12.33 / rows + 0.243) * columns ** power;
  return Math.min(Math.max(1 + ofRows + beside, LEAST), MOST);
}
