/** Orthogonal factors, by ml-matrix. */

import { Matrix, QrDecomposition, SingularValueDecomposition } from "ml-matrix";
import type { KeyedStream } from "../secrecy/chance.ts";

/** Right singular vectors (columns, m × m) by falling value, and the values. */
export interface RightFactor {
  readonly axes: Matrix;
  readonly values: readonly number[];
}

export function rightSingularVectors(rows: Matrix): RightFactor {
  const isTall = rows.rows > rows.columns;
  const factor = isTall ? new QrDecomposition(rows).upperTriangularMatrix : rows;
  const found = new SingularValueDecomposition(factor, {
    autoTranspose: true,
    computeLeftSingularVectors: false,
  });
  return { axes: found.rightSingularVectors, values: found.diagonal };
}

/**
 * A uniformly distributed orthogonal matrix (size × size).
 *
 * QR of a normal matrix with the signs of R's diagonal moved into Q: F. Mezzadri, "How
 * to generate random matrices from the classical compact groups", 2007.
 */
export function drawRotation(stream: KeyedStream, size: number): Matrix {
  return signedQ(matrixOf(stream.normal(size * size), size));
}

/** Orthonormal columns that add up to 0, in any rotation alike: rows > columns. */
export function drawOrthogonalColumns(
  stream: KeyedStream,
  rows: number,
  columns: number,
): Matrix {
  const normal = matrixOf(stream.normal(rows * columns), columns);
  return signedQ(normal.subRowVector(normal.mean("column")));
}

function signedQ(matrix: Matrix): Matrix {
  const { orthogonalMatrix, upperTriangularMatrix } = new QrDecomposition(matrix);
  const signs = upperTriangularMatrix.diagonal().map((each) => (each < 0 ? -1 : 1));
  return orthogonalMatrix.mulRowVector(signs);
}

/** Numbers row by row as a matrix of so many columns. */
export function matrixOf(numbers: Float64Array, columns: number): Matrix {
  return Matrix.from1DArray(numbers.length / columns, columns, numbers);
}
