"""Expectation-maximisation: sums over rows, and the components that follow from them.

The density of a row is Σ_c π_c N(z; μ_c, Σ_c) Π_j θ_cj(x_j), where the numbers z and
the levels x_j are independent within a component (A. Dempster, N. Laird, D. Rubin,
"Maximum likelihood from incomplete data via the EM algorithm", 1977; P. Lazarsfeld,
N. Henry, "Latent structure analysis", 1968). With memberships r_ic by these components,

    N_c = Σ_i r_ic,  S_c = Σ_i r_ic (z_i - μ_c),  Q_c = Σ_i r_ic (z_i - μ_c)(z_i - μ_c)ᵀ,
    μ_c' = μ_c + d_c,  d_c = S_c / N_c,  Σ_c' = Q_c / N_c - d_c d_cᵀ + reg_covar I.

This is scikit-learn's update, except that sums are taken around the previous means, so
that no digits are lost if a component is far from 0. Values that all parties compute
are computed element by element in a fixed order, so that all bits agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import DataSource, iterate_batches
from clustering_protocols.numerics.kernels import add_in_order
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.scaling import Scaler

from .messages import Components
from .params import Covariance, Mixture

LARGEST_LOG: Final = 2.0**20
"""Log densities are clipped at ± this, so that the encoding has digits left for others."""
_LEAST_SHARE: Final = 1e-15
_SMOOTHING: Final = 0.1
"""The weight of equal proportions in the initial ones; updates never change a 0."""
_LEAST_VARIANCE: Final = 0.1
_SAME_ROWS: Final = 1e-6
_ITEMS: Final = 1 << 17


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table that are numbers, and those that encode categories.

    Categories are yes-or-no fields, nominal fields and indicators of missing values.

    width: the number of all columns.
    categories: the columns of each category; a single column means no (0) or yes.
    """

    width: int
    categories: tuple[range, ...]

    @cached_property
    def numbers(self) -> IntArray:
        """The positions (F,) of the columns that are numbers."""
        coded = [column for category in self.categories for column in category]
        return np.setdiff1d(np.arange(self.width), coded)

    @cached_property
    def level_counts(self) -> tuple[int, ...]:
        """The number of levels of each category."""
        return tuple(max(len(category), 2) for category in self.categories)

    @cached_property
    def level_slices(self) -> tuple[slice, ...]:
        """The slice of each category's levels among the levels of all categories."""
        ends = np.cumsum([0, *self.level_counts])
        return tuple(map(slice, ends[:-1].tolist(), ends[1:].tolist()))

    @property
    def n_levels(self) -> int:
        """The total number L of levels of all categories."""
        return sum(self.level_counts)

    def split_rows(self, X: FloatArray, scale: Scaler) -> tuple[FloatArray, FloatArray]:
        """Split prepared rows X (n, m) into scaled numbers (n, F) and levels (n, L).

        A level is 1 in rows that have it, and 0 in other rows.
        """
        numbers = self.numbers
        Z = (X[:, numbers] - scale.offset[numbers]) * scale.inverse[numbers]
        return Z, self.to_levels((X > 0).astype(np.float64))

    def to_levels(self, coded: FloatArray) -> FloatArray:
        """Return indicators (n, L) of all levels, with two levels for yes-or-no columns.

        coded: float64 (n, m); in the column of each level, 1 if the row has this level
            and 0 if not, or the proportion of rows that have it.
        """
        levels = np.empty((len(coded), self.n_levels))
        for category, part in zip(self.categories, self.level_slices, strict=True):
            columns = coded[:, category.start : category.stop]
            binary = len(category) == 1
            levels[:, part] = np.hstack([1 - columns, columns]) if binary else columns
        return levels

    def join_means(
        self, Z: FloatArray, proportions: FloatArray, scale: Scaler, high: FloatArray
    ) -> FloatArray:
        """Combine means of numbers and proportions of levels into means (k, m).

        Z: float64 (k, F); the scaled means of the numeric columns.
        proportions: float64 (k, L); the proportions of the levels.
        high: float64 (m,); the value of a column in rows that have its level.
        """
        means = np.empty((len(Z), self.width))
        numbers = self.numbers
        means[:, numbers] = Z / scale.inverse[numbers] + scale.offset[numbers]
        for category, levels in zip(self.categories, self.level_slices, strict=True):
            columns = slice(category.start, category.stop)
            proportion = proportions[:, levels][:, -len(category) :]
            means[:, columns] = proportion * high[columns]
        return means


def covariance_shape(kind: Covariance, k: int, width: int) -> tuple[int, int]:
    """Return the shape of packed covariances, which is also that of the sums Q."""
    triangle = width * (width + 1) // 2
    shapes = {
        "full": (k, triangle),
        "tied": (1, triangle),
        "diag": (k, width),
        "spherical": (k, min(width, 1)),
    }
    return shapes[kind]


def _pack_covariance(kind: Covariance, k: int, matrix: FloatArray) -> FloatArray:
    """Pack a matrix (F, F), or for spherical covariances its trace, for each component."""
    n_rows, n_entries = covariance_shape(kind, k, len(matrix))
    row = matrix.diagonal()
    if kind in {"full", "tied"}:
        row = matrix[np.tril_indices(len(matrix))]
    elif kind == "spherical":
        row = add_in_order(np.zeros(1), row[:, None])[:n_entries]
    return np.tile(row, (n_rows, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums over rows, weighted by their memberships.

    weights: float64 (k,); N_c.
    first: float64 (k, F); S_c.
    second: float64, with the shape that :func:`covariance_shape` returns; Q_c.
    levels: float64 (k, L); the sum of memberships over the rows that have each level.
    log_density: the sum of the rows' log densities.
    """

    weights: FloatArray = field(repr=False)
    first: FloatArray = field(repr=False)
    second: FloatArray = field(repr=False)
    levels: FloatArray = field(repr=False)
    log_density: float

    @property
    def vector(self) -> FloatArray:
        """All sums in a single vector (n_words,)."""
        parts = (self.weights, self.first, self.second, self.levels)
        return np.concatenate([*map(np.ravel, parts), [self.log_density]])


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The shape of a model, which the parameters and the columns determine."""

    kind: Covariance
    k: int
    columns: Columns

    @classmethod
    def of(cls, params: Mixture, columns: Columns) -> Shape:
        """Return the shape of the model with these parameters and columns."""
        return cls(params.covariance_type, params.n_clusters, columns)

    @property
    def n_numeric(self) -> int:
        """The number F of numeric columns."""
        return len(self.columns.numbers)

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        k, second = self.k, covariance_shape(self.kind, self.k, self.n_numeric)
        return [(k,), (k, self.n_numeric), second, (k, self.columns.n_levels), (1,)]

    @property
    def n_words(self) -> int:
        """The number of sums in an update."""
        return sum(map(math.prod, self._shapes))

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the model."""
        k, columns = self.k, self.columns
        free_levels = columns.n_levels - len(columns.categories)
        entries = math.prod(covariance_shape(self.kind, k, self.n_numeric))
        return k - 1 + k * self.n_numeric + entries + k * free_levels

    @property
    def n_equations(self) -> int:
        """The number of independent equations in the sums of an update.

        Some sums follow from others: the weights add up to the number of rows, and the
        levels of a category add up to the weights.
        """
        return self.n_parameters + 1

    def split_sums(self, vector: FloatArray) -> Sums:
        """Split a vector (n_words,) into sums."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])[:-1]
        parts = zip(np.split(vector, ends), self._shapes, strict=True)
        weights, first, second, levels, log = (p.reshape(shape) for p, shape in parts)
        return Sums(weights, first, second, levels, float(log[0]))

    def encoding(self, model: Components, scale: Scaler, n_rows: int) -> FixedPoint:
        """Return the fixed-point encoding of the sums of an update.

        By Minkowski's inequality, no sum of squares around μ exceeds (√Σz² + √n |μ|)².
        """
        numbers = self.columns.numbers
        farthest = np.abs(model.means).max(axis=0, initial=0.0)
        roots = np.sqrt(scale.square_limit[numbers]) + math.sqrt(n_rows) * farthest
        bounds = Sums(
            np.full(self.k, float(n_rows)),
            np.tile(scale.sum_limit[numbers] + n_rows * farthest, (self.k, 1)),
            _pack_covariance(self.kind, self.k, np.outer(roots, roots)),
            np.full((self.k, self.columns.n_levels), float(n_rows)),
            n_rows * LARGEST_LOG,
        )
        return FixedPoint.of(np.maximum(bounds.vector, 1.0))


def initial_components(
    shape: Shape, V: FloatArray, scale: Scaler, weights: FloatArray
) -> Components:
    """Return initial components around given centroids.

    All components have equal weights. Their variances are the pooled variances minus
    the variances between the centroids.

    V: float64 (k, m); the centroids, in scaled units.
    weights: float64 (m,); the weights of the columns in the preparation.
    """
    columns, k = shape.columns, shape.k
    means = V[:, columns.numbers]
    centre = add_in_order(np.zeros(shape.n_numeric), means) / k
    between = add_in_order(np.zeros(shape.n_numeric), np.square(means - centre)) / k
    total = np.square(weights[columns.numbers])
    variances = np.maximum(total - between, _LEAST_VARIANCE * total)
    covariances = _pack_covariance(shape.kind, k, np.diag(variances))
    if shape.kind == "spherical":
        covariances /= max(shape.n_numeric, 1)
    high = np.where(scale.ranges.high > 0, scale.ranges.high, 1.0)
    coded = np.clip(scale.unscale(V) / high, 0.0, 1.0)
    proportions = columns.to_levels(coded)
    for part, size in zip(columns.level_slices, columns.level_counts, strict=True):
        proportion = proportions[:, part]
        sums = add_in_order(np.zeros(k), proportion.T)[:, None]
        proportion = np.where(
            sums > 0, proportion / np.where(sums > 0, sums, 1.0), 1 / size
        )
        proportions[:, part] = (1 - _SMOOTHING) * proportion + _SMOOTHING / size
    return Components(
        number=0,
        transcript="",
        closing=False,
        converged=False,
        lower_bound=None,
        weights=np.full(k, 1 / k),
        means=means,
        covariances=covariances,
        shares=proportions,
        own=np.empty(0, dtype=np.uint64),
    )


def as_matrices(kind: Covariance, covariances: FloatArray, width: int) -> FloatArray:
    """Unpack covariances into matrices (k, F, F), or (1, F, F) if they are tied."""
    if kind in {"diag", "spherical"}:
        variances = np.broadcast_to(covariances, (len(covariances), width))
        diagonal: FloatArray = variances[:, :, None] * np.eye(width)
        return diagonal
    full = np.empty((len(covariances), width, width))
    rows, columns = np.tril_indices(width)
    full[:, rows, columns] = full[:, columns, rows] = covariances
    return full


@dataclass(frozen=True, slots=True, eq=False)
class Densities:
    """The densities of components, prepared for passes over rows.

    means: float64 (k, F).
    roots: for full and tied covariances float64 (k, F, F), P with Σ⁻¹ = P Pᵀ; for
        others float64 (k, F), 1/σ².
    constants: float64 (k,); log π_c plus the constant terms of the log density.
    log_proportions: float64 (L, k); the logarithms of the proportions of levels.
    """

    shape: Shape
    means: FloatArray = field(repr=False)
    roots: FloatArray = field(repr=False)
    constants: FloatArray = field(repr=False)
    log_proportions: FloatArray = field(repr=False)

    @classmethod
    def of(cls, shape: Shape, model: Components) -> Densities:
        """Prepare the densities of a model's components.

        Raises ProtocolFailed if a covariance is not positive definite.
        """
        width, k = shape.n_numeric, shape.k
        if shape.kind in {"full", "tied"}:
            spread = as_matrices(shape.kind, model.covariances, width)
            try:
                lower = np.linalg.cholesky(spread)
            except np.linalg.LinAlgError:
                raise ProtocolFailed(
                    "The rows of a component lie in fewer dimensions than there are "
                    "columns: choose a larger reg_covar, covariance_type 'diag', or fewer "
                    "clusters."
                ) from None
            roots = np.linalg.inv(lower).swapaxes(-1, -2)
            logs = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        else:
            roots = 1.0 / np.broadcast_to(
                model.covariances, (len(model.covariances), width)
            )
            logs = np.log(roots).sum(axis=1) / 2
        weights = np.log(np.maximum(model.weights, _LEAST_SHARE))
        return cls(
            shape,
            model.means,
            np.broadcast_to(roots, (k, *roots.shape[1:])),
            weights + logs - width / 2 * math.log(2 * math.pi),
            np.log(np.maximum(model.shares, _LEAST_SHARE)).T,
        )

    def iter_memberships(
        self, data: DataSource, scale: Scaler
    ) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield the slice, memberships (k, n) and log densities (n,) of each batch."""
        for rows, batch in iterate_batches(data, self.shape.k):
            Z, H = self.shape.columns.split_rows(batch, scale)
            yield rows, *memberships_and_densities(self._evaluate(Z, H)[0])

    def _evaluate(
        self, Z: FloatArray, H: FloatArray
    ) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
        """Return log π_c plus the log density (k, n) of each row in each component.

        The first list contains the differences (n, F) of the rows from the mean of each
        component. The second list contains the squares of these differences (diag,
        spherical) or nothing (full, tied).
        """
        logs = np.empty((self.shape.k, len(Z)))
        differences, squares = [], []
        diagonal = self.shape.kind in {"diag", "spherical"}
        for c, (mean, root) in enumerate(zip(self.means, self.roots, strict=True)):
            D = Z - mean
            differences.append(D)
            if diagonal:
                squares.append(np.square(D))
                np.dot(squares[c], root, out=logs[c])
            else:
                Y = D @ root
                np.einsum("nf,nf->n", Y, Y, out=logs[c])
        logs *= -0.5
        logs += self.constants[:, None]
        if H.shape[1]:
            logs += (H @ self.log_proportions).T
        return logs, differences, squares

    def compute_sums(self, Z: FloatArray, H: FloatArray) -> FloatArray:
        """Return the sums (n_words,) over numbers Z (n, F) and levels H (n, L) of rows."""
        shape, total = self.shape, np.zeros(self.shape.n_words)
        step = max(_ITEMS // max(shape.k * max(shape.n_numeric, 1), 1), 256)
        triangle = np.tril_indices(shape.n_numeric)
        for begin in range(0, len(Z), step):
            block, levels = Z[begin : begin + step], H[begin : begin + step]
            logs, differences, squares = self._evaluate(block, levels)
            R, densities = memberships_and_densities(logs)
            first = np.array([r @ D for r, D in zip(R, differences, strict=True)])
            if squares:
                second = np.array([r @ D for r, D in zip(R, squares, strict=True)])
            else:
                second = np.array(
                    [
                        ((D * r[:, None]).T @ D)[triangle]
                        for r, D in zip(R, differences, strict=True)
                    ]
                )
            if shape.kind == "spherical" and shape.n_numeric:
                second = second.sum(axis=1, keepdims=True)
            elif shape.kind == "tied":
                second = second.sum(axis=0, keepdims=True)
            log = np.clip(densities, -LARGEST_LOG, LARGEST_LOG).sum()
            total += Sums(R.sum(axis=1), first, second, R @ levels, float(log)).vector
        return total


def memberships_and_densities(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the memberships (k, n) and the log densities (n,) of n rows.

    logs: float64 (k, n); log π_c plus the log density of each row in component c.
    """
    highest = logs.max(axis=0)
    R = np.exp(logs - highest)
    total = R.sum(axis=0)
    R /= total
    return R, np.log(total) + highest


def update_components(
    params: Mixture, shape: Shape, model: Components, sums: Sums, n_rows: int
) -> Components:
    """Return the components that follow from the sums of an update over n_rows rows.

    A component with a weight below ``min_cluster_rows`` keeps its mean, proportions and,
    unless tied, its covariance, because new ones would reveal its few rows.
    """
    moved = sums.weights >= params.min_cluster_rows
    N = np.where(moved, sums.weights, 1.0)[:, None]
    d = np.where(moved[:, None], sums.first / N, 0.0)
    rows, columns = np.tril_indices(shape.n_numeric)
    on_diagonal = (rows == columns) * params.reg_covar
    if shape.kind == "full":
        spread = sums.second / N - d[:, rows] * d[:, columns] + on_diagonal
    elif shape.kind == "tied":
        shifts = sums.weights[:, None] * d[:, rows] * d[:, columns]
        shifted = add_in_order(np.zeros(len(rows)), shifts)
        spread = (sums.second - shifted) / n_rows + on_diagonal
    elif shape.kind == "diag":
        spread = sums.second / N - np.square(d) + params.reg_covar
    else:
        shifts = add_in_order(np.zeros(shape.k), np.square(d).T)[:, None]
        spread = (sums.second / N - shifts) / max(shape.n_numeric, 1) + params.reg_covar
        spread = spread[:, : sums.second.shape[1]]
    if shape.kind != "tied":
        spread = np.where(moved[:, None], spread, model.covariances)
    bound = sums.log_density / n_rows
    before = model.lower_bound
    return model.model_copy(
        update={
            "weights": sums.weights / n_rows,
            "means": model.means + d,
            "covariances": spread,
            "shares": np.where(moved[:, None], sums.levels / N, model.shares),
            "lower_bound": bound,
            "converged": before is not None and abs(bound - before) < params.tol,
        }
    )


def check_total(
    shape: Shape,
    model: Components,
    sums: Sums,
    own: Sums,
    pooled: tuple[FloatArray, FloatArray],
    n_rows: int,
) -> None:
    """Raise ProtocolFailed if sums are not over the rows whose moments were pooled.

    Whatever the memberships are, the sums of all components add up to those of all
    rows, and no sum of squares or of weights is smaller than a party's own.

    own: this party's own part of the sums.
    pooled: float64 (F,), the variance of each number over all rows, in scaled units in
        which the mean is 0; and float64 (L,), the proportion of each level.
    """
    slack = _SAME_ROWS * n_rows
    variances, proportions = pooled
    N, mu, S = sums.weights[:, None], model.means, sums.first
    diagonal: slice | IntArray = slice(None)
    if shape.kind in {"full", "tied"}:
        diagonal = np.flatnonzero(np.equal(*np.tril_indices(shape.n_numeric)))
    Q, own_Q = sums.second[:, diagonal], own.second[:, diagonal]
    squares = (Q.sum(axis=0), (2 * mu * S + N * mu * mu).sum(axis=0), variances)
    if shape.kind == "spherical":
        squares = (Q.sum(), squares[1].sum(), variances.sum())
    scale = 1.0 + np.square(mu).max(initial=0.0)
    excesses = [
        (np.abs(sums.weights.sum() - n_rows), slack),
        (np.abs((S + N * mu).sum(axis=0)), slack * scale),
        (np.abs(squares[0] + squares[1] - n_rows * squares[2]), slack * scale),
        (np.abs(sums.levels.sum(axis=0) - n_rows * proportions), slack),
        (own.weights - sums.weights, slack),
        (own_Q - Q, slack * scale),
        (own.levels - sums.levels, slack),
        *(
            (np.abs(sums.levels[:, part].sum(axis=1) - sums.weights), slack)
            for part in shape.columns.level_slices
        ),
    ]
    if any((np.asarray(excess) > limit).any() for excess, limit in excesses):
        raise ProtocolFailed("A total is not over the rows whose moments were pooled.")


@dataclass(frozen=True, slots=True, eq=False)
class Closing:
    """The closing sums: sizes (k,), Σ log p and Σ -r log r by the final components."""

    sizes: FloatArray = field(repr=False)
    log_likelihood: float
    entropy: float

    @staticmethod
    def encoding(shape: Shape, n_rows: int) -> FixedPoint:
        """Return the encoding of the closing sums, padded to the length of an update."""
        bounds = np.ones(shape.n_words)
        bounds[: shape.k] = n_rows
        bounds[shape.k : shape.k + 2] = n_rows * np.array([LARGEST_LOG, shape.k])
        return FixedPoint.of(bounds)

    @classmethod
    def parse(cls, shape: Shape, code: FixedPoint, words: WordArray, n: int) -> Closing:
        """Decode the ring elements of the closing sums over n rows.

        Raises ProtocolFailed if the sizes do not add up to n.
        """
        vector = code.decode(words)
        sizes = vector[: shape.k]
        log, entropy = map(float, vector[shape.k : shape.k + 2])
        whole = (sizes >= 0).all() and (sizes == np.rint(sizes)).all()
        if not whole or sizes.sum() != n or vector[shape.k + 2 :].any():
            raise ProtocolFailed("The sizes of the clusters do not add up to the rows.")
        return cls(sizes, log, max(entropy, 0.0))
