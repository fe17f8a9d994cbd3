/** Rows and centroids as lists of points, and the arithmetic that parties share in bits. */

import { floats, type Floats } from "../wire/arrays.ts";

export type Point = Float64Array;
export type Points = readonly Point[];

/**
 * The squared distance of two points.
 *
 * Four features a turn, in this order of operations: all parties find the same bits.
 */
export function squaredDistance(x: Point, v: Point): number {
  const whole = x.length - (x.length % 4);
  let sum = 0;
  for (let f = 0; f < whole; f += 4) {
    const a = x[f]! - v[f]!;
    const b = x[f + 1]! - v[f + 1]!;
    const c = x[f + 2]! - v[f + 2]!;
    const d = x[f + 3]! - v[f + 3]!;
    sum += a * a + b * b + (c * c + d * d);
  }
  for (let f = whole; f < x.length; f++) {
    const a = x[f]! - v[f]!;
    sum += a * a;
  }
  return sum;
}

/** The number of the nearest point; of equals the lowest. */
export function nearest(x: Point, points: Points): number {
  let [found, least] = [0, Infinity];
  points.forEach((point, number) => {
    const distance = squaredDistance(x, point);
    if (distance < least) [found, least] = [number, distance];
  });
  return found;
}

/** The mean of points, at least one. */
export function meanOf(points: Points): Point {
  const sums = new Float64Array(points[0]!.length);
  for (const point of points) point.forEach((x, f) => (sums[f]! += x));
  return sums.map((sum) => sum / points.length);
}

/** Points as an array of messages, of so many columns. */
export function pointsArray(points: Points, columns: number): Floats {
  const data = new Float64Array(points.length * columns);
  points.forEach((point, row) => data.set(point, row * columns));
  return floats(data, [points.length, columns]);
}

/** The rows of an array of messages. */
export function pointsOf({ shape, data }: Floats): Points {
  const [rows = 0, columns = 0] = shape;
  return Array.from({ length: rows }, (_, row) =>
    data.slice(row * columns, (row + 1) * columns),
  );
}
