/** What a party says of its own clusters, and how a start is merged of what all say. */

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

/** A party describes no cluster with fewer rows, and tells sizes in fives. */
const LEAST_ROWS = 5;
const COARSEST_STEP = 1 / 20;
const STARTS_OF_ROWS = 5;
const STARTS_OF_MERGING = 10;
const SAMPLE_ROWS = 20_000;

/** The best of five k-means of a party's own rows, its means rounded. */
export function describeRows(
  rows: Points,
  clusters: number,
  stream: KeyedStream,
): Clusters {
  const sample = rows.length > SAMPLE_ROWS ? drawRows(rows, stream) : rows;
  const wanted = Math.max(
    1,
    Math.min(clusters, Math.floor(sample.length / LEAST_ROWS)),
  );
  const ones = sample.map(() => 1);
  const found = bestOf(STARTS_OF_ROWS, sample, ones, wanted, stream);
  const labels = labelRows(sample, found);
  const nothing = new Float64Array(rows[0]!.length);
  const described = Array.from({ length: clusters }, (_, cluster) => {
    const members = sample.filter((_, row) => labels[row] === cluster);
    return members.length < LEAST_ROWS
      ? { centroid: nothing, size: 0 }
      : {
          centroid: roundedMean(members),
          size: LEAST_ROWS * Math.floor(members.length / LEAST_ROWS),
        };
  });
  return {
    centroids: described.map(({ centroid }) => centroid),
    sizes: described.map(({ size }) => size),
  };
}

/** A start: k-means of the parties' centroids, each as heavy as the rows it stands for. */
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
    // what coincides is moved apart by the updates
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
