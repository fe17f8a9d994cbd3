"""Stage: remove site effects from measured columns (ComBat), by two checked blind sums.

Scanners and laboratories shift and stretch what they measure. ComBat models column g of
row j at site i as

    y = α_g + z_j·β_g + γ_ig + δ_ig ε

and estimates α, β and the residual variance σ² over all rows. ComBat then shrinks γ and
δ of each site towards their common distribution over the columns. With s = (y - α -
z·β)/σ, the adjusted value is (s - γ*) σ/δ* + α + z·β; effects of the covariates z are
preserved. See Johnson, Li and Rabinovic, "Adjusting batch effects in microarray
expression data using empirical Bayes methods", Biostatistics 8, 2007. The iteration
stops as in neuroCombat 0.2.12.

A site is a party of a column group of three or more. If rows are centred within each
site, its effect vanishes, and β can be computed from sums of products of centred rows
(the theorem of Frisch and Waugh).

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: Σ z z' and Σ z y' of centred rows, Σ y, Σ z |
| 2 | `add-up` → `share`: squared residuals of centred rows |
| 3 | `add-up` → `share`, empty: each site computes its own effects |

| reader | reads |
|---|---|
| analyst | nothing |
| sites of the column group | α, β, σ; sums and products of covariates over all rows |
| the site alone | its γ and δ, and their priors, which it computes by itself |

A total weighted by covariates is an equation about rows whose covariates others may
know. Therefore a site stops if few of its rows have some level of a covariate, or if a
single row determines more than half of its own fitted value. In its audit, the site
counts only the sum over all rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused, InvalidData
from clustering_protocols.contract import PartyContext, SessionContext, Stage
from clustering_protocols.numerics.data_source import DataSource, MappedRows
from clustering_protocols.records.arrays import FloatArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.sums import (
    Findings,
    RowsSummed,
    Sum,
    SumProgram,
    Sums,
    n_group_rows,
)
from clustering_protocols.terms.preparation import ColumnPlan

NAME = "site-effects"
LEAST_OF_LEVEL: Final = 5
"""A site needs this many rows with each level of a covariate, or none with that level."""

_MOST_LEVERAGE: Final = 0.5
_SMALLEST_SHARE: Final = 1e-8  # of a covariate's variance, unexplained by the others
_STEP: Final = 1e-4  # the iteration ends if the relative change is smaller
_MOST_STEPS: Final = 10_000


class SiteEffects(Record):
    """Memory: the effects of the covariates and of this site on each harmonised column.

    intercepts, coefficients: α (f,) and β (q, f), estimated over all rows.
    shifts, scales: σγ* (f,) and δ* (f,) of this site.
    """

    kind = "site-effects"

    intercepts: Annotated[FloatArray, Spec("columns")]
    coefficients: Annotated[FloatArray, Spec("covariates", "columns")]
    shifts: Annotated[FloatArray, Spec("columns")]
    scales: Annotated[FloatArray, Spec("columns", low=0)]


def harmonise(plan: ColumnPlan, batch: FloatArray, effects: SiteEffects) -> FloatArray:
    """Remove site effects, in place, from a batch (n, m + q); return its columns (n, m)."""
    columns, covariates = np.split(batch, [len(plan.columns)], axis=1)
    expected = effects.intercepts + covariates @ effects.coefficients
    residuals = columns[:, plan.harmonised] - expected - effects.shifts
    columns[:, plan.harmonised] = residuals / effects.scales + expected
    return columns


def estimate_site_effects(context: PartyContext, data: DataSource) -> Sums[Findings]:
    """Estimate the effects of this site on its columns.

    data: batches of columns and covariates (n, m + q); see :meth:`ColumnPlan.prepare`.

    Raises InvalidData as :meth:`_SiteRows.check_values` does.
    Raises GuardRefused if covariates are linearly dependent.
    """
    plan = context.session.terms.plans[context.slot.column]
    rows = _SiteRows(plan, data)
    n, q, f = n_group_rows(context), len(plan.covariates), rows.n_columns
    low, high = plan.harmonised_ranges
    middle, reach = (low + high) / 2, high - low
    upper = np.triu_indices(q)
    bounds = np.concatenate(
        [
            np.outer(reach[f:], reach[f:])[upper],
            np.outer(reach[f:], reach[:f]).ravel(),
            reach / 2,
        ]
    )
    products = FixedPoint.of(n * np.maximum(bounds, np.finfo(np.float64).tiny))

    def add_products() -> WordArray:
        own = rows.centred_products()
        rows.check_values(own)
        sums = data.n_rows * (rows.mean - middle)
        return products.encode(
            np.concatenate([own[f:, f:][upper], own[f:, :f].ravel(), sums])
        )

    def fit(words: WordArray) -> tuple[FloatArray, FloatArray]:
        square, cross, sums = np.split(
            products.decode(words), [len(upper[0]), len(upper[0]) + q * f]
        )
        zz = np.zeros((q, q))
        zz[upper] = square
        zz += np.triu(zz, 1).T
        spread = np.sqrt(np.maximum(np.diag(zz), 0.0))
        correlations = zz / np.outer(spread, spread) if (spread > 0).all() else 0 * zz
        if q and np.linalg.eigvalsh(correlations)[0] < _SMALLEST_SHARE:
            raise GuardRefused(
                f"The covariates {', '.join(plan.covariates)} follow from each other: "
                "leave one out."
            )
        slopes = np.linalg.solve(zz, cross.reshape(q, f)).astype(np.float64)
        means = sums / n + middle
        return means[:f] - means[f:] @ slopes, slopes

    intercepts, slopes = yield from Sum(
        "site-effects-1",
        local=add_products,
        fits=products.fits,
        decode=fit,
        remember=lambda: [RowsSummed()],
    )
    residuals = reach[:f] + reach[f:] @ np.abs(slopes)
    squares = FixedPoint.of(n * np.square(residuals))
    variance = yield from Sum(
        "site-effects-2",
        local=lambda: squares.encode(rows.squared_residuals(slopes)),
        fits=lambda words: (
            bool((words.view(np.int64) >= 0).all()) and squares.fits(words)
        ),
        decode=lambda words: squares.decode(words) / n,
    )
    varies = variance > n / squares.unit
    spread = np.sqrt(np.where(varies, variance, 1.0))
    shifts = (rows.mean[:f] - intercepts - rows.mean[f:] @ slopes) / spread
    scales = rows.squared_residuals(slopes) / (data.n_rows - 1) / np.square(spread)
    shifts[varies], scales[varies] = shrink_site_effects(
        shifts[varies], scales[varies], data.n_rows
    )
    effects = SiteEffects(
        intercepts=intercepts,
        coefficients=slopes,
        shifts=np.where(varies, spread * shifts, 0.0),
        scales=np.where(varies, np.sqrt(scales), 1.0),
    )
    return Findings([effects])


def shrink_site_effects(
    shifts: FloatArray, variances: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return the posterior means γ* and δ*² (f,) of ComBat for standardised columns.

    shifts, variances: the estimates γ̂ and δ̂² (f,) from the n rows of one site.
    """
    if len(shifts) < 2 or not variances.var(ddof=1):
        return shifts, variances  # their distribution cannot be estimated
    centre, width = shifts.mean(), shifts.var(ddof=1)
    m, s = variances.mean(), variances.var(ddof=1)
    shape, rate = (2 * s + m**2) / s, (m * s + m**3) / s
    deviations = (n - 1) * variances
    gamma: FloatArray = shifts
    delta: FloatArray = variances
    for _ in range(_MOST_STEPS):
        weight = n * width
        new_gamma: FloatArray = (weight * shifts + delta * centre) / (weight + delta)
        squares = deviations + n * np.square(shifts - new_gamma)
        new_delta: FloatArray = (0.5 * squares + rate) / (n / 2 + shape - 1)
        # As in the reference implementation, a negative shift gives a negative change.
        with np.errstate(divide="ignore", invalid="ignore"):
            change = max(
                (np.abs(new_gamma - gamma) / gamma).max(),
                (np.abs(new_delta - delta) / delta).max(),
            )
        gamma, delta = new_gamma, new_delta
        if change <= _STEP:
            break
    return gamma, delta


class _SiteRows:
    """The harmonised columns (f) and the covariates (q) of a site's rows, side by side."""

    def __init__(self, plan: ColumnPlan, data: DataSource) -> None:
        self._plan = plan
        self.n_columns = int(plan.harmonised.sum())
        covariates = len(plan.columns) + np.arange(len(plan.covariates))
        columns = np.concatenate([np.flatnonzero(plan.harmonised), covariates])
        names = [*np.array(plan.columns)[plan.harmonised].tolist(), *plan.covariates]
        self._data = MappedRows(data, names, lambda batch: batch[:, columns])

    @cached_property
    def mean(self) -> FloatArray:
        total = np.zeros(len(self._data.columns))
        for batch in self._data.batches():
            total += batch.sum(axis=0)
        return total / self._data.n_rows

    def centred_products(self) -> FloatArray:
        """Return the sums of products (f + q, f + q) of deviations from the mean."""
        total = np.zeros((len(self.mean), len(self.mean)))
        for batch in self._data.batches():
            centred = batch - self.mean
            total += centred.T @ centred
        return total

    def squared_residuals(self, slopes: FloatArray) -> FloatArray:
        """Return the sums of squared residuals (f,) of columns regressed on covariates."""
        total, f = np.zeros(self.n_columns), self.n_columns
        for batch in self._data.batches():
            centred = batch - self.mean
            residuals = centred[:, :f] - centred[:, f:] @ slopes
            total += np.square(residuals).sum(axis=0)
        return total

    def check_values(self, products: FloatArray) -> None:
        """Check that others cannot derive values of single rows from this site's sums.

        products: the result of :meth:`centred_products`.

        Raises InvalidData if values are out of range, a covariate is constant, a level has
            too few rows, or one row determines more than half of its fitted value.
        """
        plan, n, f = self._plan, self._data.n_rows, self.n_columns
        low, high = plan.harmonised_ranges
        outside = np.zeros(len(low), dtype=bool)
        inverse = np.linalg.pinv(
            products[f:, f:], rcond=_SMALLEST_SHARE, hermitian=True
        )
        leverage = 0.0
        for batch in self._data.batches():
            outside |= ((batch < low) | (batch > high)).any(axis=0)
            centred = (batch - self.mean)[:, f:]
            leverages = 1 / n + ((centred @ inverse) * centred).sum(axis=1)
            leverage = max(leverage, float(leverages.max()))
        if outside.any():
            names = np.array(self._data.columns)[outside]
            raise InvalidData(
                f"Values outside the dictionary's range, in {', '.join(names)}."
            )
        begin = f
        for field in plan.covariate_fields:
            end = begin + len(plan.design_names(field))
            if not np.diag(products)[begin:end].any():
                raise InvalidData(
                    f"Covariate {field.name!r} has the same value in all your rows: its "
                    "effect cannot be separated from that of your site. The terms must "
                    "not name it."
                )
            if not field.is_measured and not field.is_ordinal:
                indicators = n * self.mean[begin:end]
                counts = np.rint([n - indicators.sum(), *indicators])
                if ((counts > 0) & (counts < LEAST_OF_LEVEL)).any():
                    raise InvalidData(
                        f"Fewer than {LEAST_OF_LEVEL} of your rows have some level of "
                        f"covariate {field.name!r}: others could compute these rows."
                    )
            begin = end
        if leverage > _MOST_LEVERAGE:
            raise InvalidData(
                "One of your rows determines more than half of its fitted value, so others "
                "could compute it: leave out such rows, or a covariate."
            )


def _harmonised_column_groups(session: SessionContext) -> list[tuple[str, ...]]:
    groups = zip(session.layout.column_groups, session.terms.plans, strict=True)
    return [group for group, plan in groups if plan.harmonised.any()]


def _sum_sizes(session: SessionContext, slot: str) -> list[int]:
    plan = session.terms.plans[session.layout.slot(slot).column]
    f, q = int(plan.harmonised.sum()), len(plan.covariates)
    return [q * (q + 1) // 2 + q * f + f + q, f]


def build_stage() -> Stage:
    """Return the stage, which needs the secrets of column groups."""
    return SumProgram(
        NAME, 2, estimate_site_effects, _sum_sizes, _harmonised_column_groups
    ).build_stage()
