"""Pooled co-clustering with which sessions of `fccm` are compared, and examples.

The examples use synthetic data: three blocks of objects and items, with noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax, xlogy

from clustering_protocols.algorithms.coincidence import strongest_clusters
from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import public_stream
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

from . import maths, messages
from .params import CoClustering
from .site_state import best_lane

_N_INIT: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledCoclustering:
    """The result of a pooled run: U (n, C), W (m, C), and the criterion (equation 1)."""

    objects: FloatArray = field(repr=False)
    items: FloatArray = field(repr=False)
    n_iterations: int
    criterion: float


def cluster_pooled(
    params: CoClustering, X: FloatArray, trace: Trace[CoClustering] | None
) -> IntArray:
    """Return the clusters of the objects (n,), from the same U(0) as the session."""
    return strongest_clusters(run(params, X, trace).objects, maths.TIE)


def run(
    params: CoClustering, X: FloatArray, trace: Trace[CoClustering] | None
) -> PooledCoclustering:
    """Run FCCM (equations 2 and 3) on X (n, m); rows are in the session's order.

    Returns the result of the start with the largest criterion, or the first of several
    such starts.
    """
    R = csr_array(X)
    runs = [run_from(params, R, U) for U in starts(params, len(X), trace)]
    criteria = np.array([[pooled.criterion for pooled in runs]])
    return runs[int(strongest_clusters(criteria, maths.TIE)[0])]


def starts(
    params: CoClustering, n_rows: int, trace: Trace[CoClustering] | None
) -> list[FloatArray]:
    """Return U(0) (n, C) of every start, as in the traced session."""
    streams = (
        public_stream(0, "fccm", lane)
        if trace is None
        else trace.session.public_stream("fccm", "start", lane)
        for lane in range(params.n_init)
    )
    k = params.n_clusters
    return [maths.first_memberships(n_rows, k, stream) for stream in streams]


def run_from(params: CoClustering, R: csr_array, U: FloatArray) -> PooledCoclustering:
    """Run FCCM on R (n, m) from U(0) (n, C)."""
    n_iterations, (lambda_u, lambda_w) = 0, params.fuzziness
    while n_iterations < params.max_iter:
        W = softmax(maths.item_exponents(R, U, lambda_w), axis=0)
        sums = maths.aggregation(R, W)
        before, U = U, maths.object_memberships(sums, lambda_u)
        n_iterations += 1
        if np.abs(U - before).max() <= params.tol:
            break
    entropies = lambda_u * xlogy(U, U).sum() + lambda_w * xlogy(W, W).sum()
    criterion = float((U * sums).sum() - entropies)
    return PooledCoclustering(
        objects=U, items=W, n_iterations=n_iterations, criterion=criterion
    )


def objectives(
    params: CoClustering,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[CoClustering],
) -> Objectives | None:
    """Compare the session's criterion with that of the best of ten other starts.

    The criterion is positive and to be maximised, so ``own`` and ``pooled`` are
    exchanged. A ratio above 1 then means a worse session, as for other protocols.
    """
    state = trace.memories[trace.session.slots[0]].get(messages.Memberships)
    if state is None:
        return None
    ten = params.model_copy(update={"n_init": _N_INIT})
    own = float(state.criteria[best_lane(state)])
    best = run(ten, X, None)
    agreement = adjusted_rand(best.objects.argmax(axis=1), clustered[0])
    return Objectives(best.criterion, own, agreement)


def examples() -> Sequence[Example[CoClustering]]:
    """Return examples with several starts, repeated sums, several runs and many items."""
    solvable: dict[str, Any] = {"n_clusters": 3, "small_cohorts": "allow"}
    one = solvable | {"n_init": 1}
    fuzziness: dict[str, Any] = {"lambda_u": 0.02, "lambda_w": 5.0}
    return [
        _example(3, **solvable, **fuzziness, n_init=3),
        _example(4, **one),
        _example(3, **one, lambda_u=0.05, lambda_w=0.5, max_iter=6),
        _example(
            3,
            missing=0.1,
            sections={"evaluation": Evaluation(n_clusters=(2, 3))},
            **one,
            **fuzziness,
            max_iter=10,
            alignment=Alignment(method="ecdh"),
        ),
        _example(3, missing=0.1, **one, max_iter=4, alignment=BY_MATCH_KEYS),
        _example(3, width=1500, n_clusters=2, n_init=1, max_iter=3),
    ]


def _example(
    n_sites: int,
    *,
    width: int = 24,
    missing: float = 0.0,
    sections: Mapping[str, Any] | None = None,
    **values: Any,
) -> Example[CoClustering]:
    return Example(
        params=CoClustering(**values),
        layout=Layout.lattice(1, n_sites),
        X=_draw_degrees(np.random.default_rng(0), width),
        missing=missing,
        sections=sections or {},
    )


def _draw_degrees(rng: np.random.Generator, width: int) -> FloatArray:
    """Draw degrees of co-occurrence (60, width), all different, so that rows differ."""
    objects, items = rng.integers(3, size=60), rng.integers(3, size=width)
    likely = np.where(objects[:, None] == items[None, :], 0.8, 0.1)
    occurs = rng.random((60, width)) < likely
    return np.where(occurs, 0.9, 0.1) + 0.1 * rng.random((60, width))
