/** How a party describes its own clusters, and how all are merged into a start. */

import { roundToEven } from "../../../numerics/floats.ts";
import { drawCentroids, lloyd } from "../../../numerics/k-means.ts";
import { labelRows } from "./passes.ts";
import {
  meanOf,
  squaredDistance,
  type Point,
  type Points,
} from "../../../numerics/points.ts";
import { roundUp } from "../../../numerics/round-numbers.ts";
import type { KeyedStream } from "../../../secrecy/chance.ts";
import { squared, sumOf } from "../../../stages/pooled.ts";
import { refuse } from "../../../wire/problems.ts";

/** Centroids, and rows of each; 0 where a party has no cluster. */
export interface Clusters {
  readonly centroids: Points;
  readonly sizes: readonly number[];
}

/** A party describes no cluster with fewer rows, and rounds sizes to fives. */
export const LEAST_ROWS = 5;
const COARSEST_STEP = 1 / 20;
/** Clusters that a party describes for each that is asked for. */
export const DESCRIBED = 2;
/** With fewer rows for each, a party describes as many as are asked for. */
const ROWS_OF_EACH = 15;
const MOST_FILLINGS = 10;
const STARTS_OF_ROWS = 10;
const STARTS_OF_MERGING = 50;
const SAMPLE_ROWS = 20_000;

/** The best k-means of a party's own rows, its means rounded: five rows or more each. */
export function describeRows(
  rows: Points,
  clusters: number,
  stream: KeyedStream,
): Clusters {
  const sample = rows.length > SAMPLE_ROWS ? drawRows(rows, stream) : rows;
  const most = DESCRIBED * clusters;
  const wanted = sample.length >= ROWS_OF_EACH * most ? most : clusters;
  const described = Array.from({ length: most }, () => ({
    centroid: new Float64Array(rows[0]!.length) as Point,
    size: 0,
  }));
  if (sample.length >= LEAST_ROWS) {
    const fitting = Math.min(wanted, Math.floor(sample.length / LEAST_ROWS));
    const ones = sample.map(() => 1);
    const found = bestOf(STARTS_OF_ROWS, sample, ones, fitting, stream);
    const labels = fillClusters(sample, found);
    for (let cluster = 0; cluster < fitting; cluster++) {
      const members = sample.filter((_, row) => labels[row] === cluster);
      described[cluster] = {
        centroid: roundedMean(members),
        size: LEAST_ROWS * Math.floor((members.length + 2) / LEAST_ROWS),
      };
    }
  }
  return {
    centroids: described.map(({ centroid }) => centroid),
    sizes: described.map(({ size }) => size),
  };
}

/** Labels by which each cluster has five rows: it takes the nearest that others spare. */
function fillClusters(rows: Points, start: Points): readonly number[] {
  let centroids = start;
  let labels: readonly number[] = [];
  for (let step = 0; step < MOST_FILLINGS; step++) {
    const nearest = labelRows(rows, centroids);
    const filled = fill(rows, centroids, nearest);
    const settled = [nearest, labels].some((known) =>
      filled.every((label, row) => label === known[row]),
    );
    labels = filled;
    if (settled) break;
    centroids = centroids.map((_, cluster) =>
      meanOf(rows.filter((_, row) => filled[row] === cluster)),
    );
  }
  return labels;
}

function fill(
  rows: Points,
  centroids: Points,
  nearest: ArrayLike<number>,
): readonly number[] {
  const labels = Array.from(nearest);
  const counts = centroids.map((_, c) => labels.filter((label) => label === c).length);
  for (const [cluster, centroid] of centroids.entries()) {
    if (counts[cluster]! >= LEAST_ROWS) continue;
    const extra = rows.map(
      (row, i) =>
        squaredDistance(row, centroid) - squaredDistance(row, centroids[labels[i]!]!),
    );
    for (const row of [...extra.keys()].sort((a, b) => extra[a]! - extra[b]!)) {
      if (counts[cluster]! >= LEAST_ROWS) break;
      const from = labels[row]!;
      if (from === cluster || counts[from]! <= LEAST_ROWS) continue;
      counts[from]!--;
      counts[cluster]!++;
      labels[row] = cluster;
    }
  }
  return labels;
}

/** A start: k-means of the parties' centroids, weighted by the rows of their clusters. */
export function mergeClusters(
  proposed: readonly Clusters[],
  rows: readonly number[],
  clusters: number,
  stream: KeyedStream,
): Points {
  const weighted = proposed.flatMap(({ centroids, sizes }, party) => {
    // a party describes a sample of its rows, and counts for all of them
    const described = Math.max(sumOf(sizes), 1);
    return centroids.map((centroid, cluster) => ({
      centroid,
      weight: (sizes[cluster]! / described) * rows[party]!,
    }));
  });
  const given = weighted.filter(({ weight }) => weight > 0);
  if (!given.length) {
    refuse(
      "invalid-data",
      `No party has a cluster of ${LEAST_ROWS} rows to start from.`,
    );
  }
  const points = given.map(({ centroid }) => centroid);
  if (points.length < clusters) {
    // updates move equal centroids apart
    return Array.from({ length: clusters }, (_, c) => points[c % points.length]!);
  }
  const weights = given.map(({ weight }) => weight);
  return bestOf(STARTS_OF_MERGING, points, weights, clusters, stream);
}

/** Means of random rows and of the four nearest to each. */
export function drawMeans(rows: Points, clusters: number, stream: KeyedStream): Points {
  const sample = rows.length > SAMPLE_ROWS ? drawRows(rows, stream) : rows;
  const chosen = stream.permutation(sample.length).slice(0, clusters);
  return chosen.map((number) => {
    const away = sample.map((row) => squaredDistance(row, sample[number]!));
    const nearest = [...away.keys()].sort((a, b) => away[a]! - away[b]!);
    return meanOf(nearest.slice(0, LEAST_ROWS).map((row) => sample[row]!));
  });
}

function bestOf(
  starts: number,
  points: Points,
  weights: readonly number[],
  clusters: number,
  stream: KeyedStream,
): Points {
  const runs = Array.from({ length: starts }, () =>
    lloyd(points, weights, drawCentroids(points, weights, clusters, stream)),
  );
  return runs.reduce((best, run) => (run.inertia < best.inertia ? run : best))
    .centroids;
}

function drawRows(rows: Points, stream: KeyedStream): Points {
  const chosen = stream.permutation(rows.length).slice(0, SAMPLE_ROWS);
  return chosen.sort((a, b) => a - b).map((row) => rows[row]!);
}

/** In steps of at least max(1/20, 5/n) spreads: it says little of a single row. */
function roundedMean(members: Points): Point {
  const share = Math.max(COARSEST_STEP, LEAST_ROWS / members.length);
  return meanOf(members).map((mean, f) => {
    const squares = members.map((row) => squared(row[f]! - mean));
    const step = roundUp(share * Math.sqrt(sumOf(squares) / members.length));
    return step > 0 ? roundToEven(mean / step) * step : mean;
  });
}
