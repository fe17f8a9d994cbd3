/** Quality measures of labels, from sums over the rows of all parties. */

import type { Figures } from "../../../generated/shared.ts";
import { squaredDistance, type Points } from "../../../numerics/points.ts";
import { sumOf } from "../../../stages/pooled.ts";
import type { Around } from "./encodings.ts";
import type { Known } from "./following.ts";

const DIGITS = 6;
const COINCIDING = 1e6;
const ALIKE = 1e-3;

/** The figures of clusters that have rows; undefined ones are null. */
export function figuresOf(
  around: Around,
  means: Points,
  { number, centroids }: Known,
  converged: boolean,
): Figures {
  const there = [...around.sizes.keys()].filter((c) => around.sizes[c]! > 0);
  const pick = <T>(values: readonly T[]) => there.map((c) => values[c]!);
  const counts = pick(around.sizes);
  const apart = separationsOf(pick(means));
  const scatter = pick(around.distances).map((sum, c) => sum / counts[c]!);
  const [rows, inertia] = [sumOf(counts), sumOf(pick(around.squares))];
  const isComparable = there.length >= 2 && there.length < rows;
  const compared = isComparable
    ? {
        simplified_silhouette: Math.min(1, Math.max(-1, around.silhouettes / rows)),
        calinski_harabasz: calinskiHarabasz(counts, apart, inertia),
        davies_bouldin: daviesBouldin(scatter, apart),
      }
    : {};
  const [compactness, degrees] = around.degrees;
  const ofDegrees =
    compactness === undefined
      ? { xie_beni: xieBeni(inertia, rows, apart) }
      : {
          xie_beni: xieBeni(compactness, rows, separationsOf(centroids)),
          partition_coefficient: partitionCoefficient(degrees! / rows, around.sizes),
        };
  return {
    ...NOTHING,
    ...compared,
    ...ofDegrees,
    n_clusters: there.length,
    inertia: Math.max(inertia, 0),
    n_iter: number,
    converged,
  };
}

/** Likelihoods are of mixtures alone: a record leaves out those that are not there. */
const NOTHING = {
  n_clusters: 1,
  inertia: null,
  simplified_silhouette: null,
  silhouette: null,
  calinski_harabasz: null,
  davies_bouldin: null,
  partition_coefficient: null,
  xie_beni: null,
  criterion: null,
  gap: null,
  gap_error: null,
  gap_of_one: null,
  stability: null,
  prediction_strength: null,
  n_iter: null,
  converged: null,
} as Figures;

type Square = readonly (readonly number[])[];

function separationsOf(means: Points): Square {
  return means.map((mean) => means.map((other) => squaredDistance(mean, other)));
}

/** [Σ n_c ‖m_c - m‖² / (k - 1)] / [Σ q_c / (n - k)]. */
function calinskiHarabasz(
  counts: readonly number[],
  apart: Square,
  within: number,
): number | null {
  if (!(within > 0)) return null;
  const [k, rows] = [counts.length, sumOf(counts)];
  const weighted = counts.map(
    (n, c) => n * sumOf(apart[c]!.map((d, l) => d * counts[l]!)),
  );
  const between = sumOf(weighted) / (2 * rows);
  return (between * (rows - k)) / (within * (k - 1));
}

/** The mean over c of max (s_c + s_l) / ‖m_c - m_l‖. */
function daviesBouldin(scatter: readonly number[], apart: Square): number | null {
  const worst = scatter.map((own, c) =>
    Math.max(
      ...others(apart[c]!, c).map(([d, l]) => (own + scatter[l]!) / Math.sqrt(d)),
    ),
  );
  const mean = sumOf(worst) / worst.length;
  return Number.isFinite(mean) ? mean : null;
}

/** Σ q_c / (n · min ‖m_c - m_l‖²). */
function xieBeni(compactness: number, rows: number, apart: Square): number | null {
  const nearest = Math.min(
    ...apart.flatMap((row, c) => others(row, c).map(([d]) => d)),
  );
  if (!(nearest > 0 && nearest < Infinity)) return null;
  const found = Math.max(compactness, 0) / (rows * nearest);
  return found < COINCIDING ? found : null;
}

/** The mean Σ_c μ_c² of rows; null if all are equal, or all rows in one cluster. */
function partitionCoefficient(mean: number, sizes: readonly number[]): number | null {
  const found = Math.min(mean, 1);
  const areAlike = sizes.length > 1 && found * sizes.length < 1 + ALIKE;
  return areAlike || sizes.filter(Boolean).length < 2 ? null : found;
}

function others(row: readonly number[], own: number): [number, number][] {
  return row.map((d, l): [number, number] => [d, l]).filter(([, l]) => l !== own);
}

/** Figures as they are published. */
export function rounded(figures: Figures): Figures {
  const entries = Object.entries(figures).map(([name, value]) => [
    name,
    typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value,
  ]);
  return Object.fromEntries(entries) as unknown as Figures;
}
