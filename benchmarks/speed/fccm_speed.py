"""Speed and memory of `fccm` at one site, as ratios to named primitives of one run.

    python -m benchmarks.speed.fccm_speed

1,000,000 co-occurrences of 100,000 objects with 5,000 items, the third of four sites,
k = 20, `global`. Processor time.

pass     weights from memberships and encoded sums from weights, against the two sparse
         products R'U and R·e of which a pass consists (goal: at most 3). Ends with 1 if
         it is missed.
parts    each step of the pass against the same products.
reply    a whole reply to a total against the same products: besides the pass the order
         in which rows travel, four streams, memberships of objects from the total, and
         what is remembered.
memory   the most that a pass holds beside R, against nnz + n·k numbers.
starts   bytes and rounds of whole sessions with one start and with ten, and a pass of
         ten against the products of ten. Planted co-clusters, three blocks.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from benchmarks.papers.fccm_experiments import planted
from benchmarks.speed.timing import cpu_seconds, ratio
from clustering_protocols import simulation
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import SparseSource
from clustering_protocols.protocols.fccm import (
    CoClustering,
    maths,
    messages,
    site_state,
)
from clustering_protocols.protocols.fccm.params import FccmContext
from clustering_protocols.protocols.fccm.party import FccmParty, encode_share
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.masked_sums import share
from clustering_protocols.shared_stages.secrets import RowSecret
from clustering_protocols.terms.terms import Layout

N_OBJECTS, N_ITEMS, N_CLUSTERS, N_SITES = 100_000, 5_000, 20, 4
N_NONZERO = 1_000_000
GOAL = 3.0
RUNS = 9


def sites(R: csr_array, n_init: int) -> dict[str, FccmContext]:
    """Return where the sites stand when they have to add their first shares."""
    layout = Layout.lattice(1, N_SITES)
    params = CoClustering(
        n_clusters=N_CLUSTERS,
        lambda_u=0.01,
        lambda_w=1000.0,
        n_init=n_init,
        small_cohorts="allow",
    )
    rows = SparseSource(R, ids=simulation.number_rows(R.shape[0]))
    data = dict.fromkeys(layout.names, rows)
    session = simulation.Session(params, layout, data, seed=0)
    order = np.random.default_rng(1).permutation(R.shape[0])
    known = [RowOrder(order=order), RowSecret(secret="00" * 32)]
    memory = Memory().remember(known)
    session.memories = dict.fromkeys(layout.names, memory)
    return {slot: session.context(slot) for slot in layout.names}


def made() -> csr_array:
    """Return degrees of co-occurrence at random places, ten of each object."""
    rng = np.random.default_rng(0)
    per_object = N_NONZERO // N_OBJECTS
    begins = np.arange(0, N_NONZERO + 1, per_object)
    first = rng.integers(N_ITEMS, size=(N_OBJECTS, 1))
    steps = np.arange(per_object) * (N_ITEMS // per_object)
    items = np.sort((first + steps) % N_ITEMS, axis=1).reshape(-1)
    return csr_array((rng.random(N_NONZERO), items, begins), shape=(N_OBJECTS, N_ITEMS))


def main() -> None:
    """Print the ratios."""
    R = made()
    views = sites(R, n_init=1)
    found = _pass(views["r1c3"], R)
    print(f"a pass: {found:.2f} × the products R'U and R·e (goal {GOAL:g})")
    known = site_state.first(views["r1c3"], R)
    _parts(views, R, known)
    _memory(_one_pass(views["r1c3"], R, known))
    _starts(R)
    sys.exit(0 if found <= GOAL else 1)


def _pass(view: FccmContext, R: csr_array) -> float:
    known = site_state.first(view, R)
    return ratio(
        _one_pass(view, R, known), _products(view, R, known), RUNS, cpu_seconds
    )


def _one_pass(
    view: FccmContext, R: csr_array, known: messages.Memberships
) -> Callable[[], WordArray]:
    def one_pass() -> WordArray:
        after = site_state.under_way(view, known, R, known.shifts, repeats=0)
        return encode_share(view, R, after)

    return one_pass


def _products(
    view: FccmContext, R: csr_array, known: messages.Memberships
) -> Callable[[], None]:
    W = np.array(known.weights)

    def both_products() -> None:
        maths.item_exponents(R, known.objects, view.session.params.lambda_w)
        maths.aggregation(R, W)

    return both_products


def _starts(R: csr_array) -> None:
    ten = _pass(sites(R, n_init=10)["r1c3"], R)
    print(f"starts: a pass of ten is {ten:.2f} × the products of ten")
    for shape in ((60, 60), (3_000, 300)):
        X, _ = planted(0, shape)
        for n_init in (1, 10):
            _session(X, n_init)


def _session(X: FloatArray, n_init: int) -> None:
    params = CoClustering(n_clusters=3, n_init=n_init, small_cohorts="allow")
    parts = simulation.split(X, Layout.lattice(1, N_SITES), 0)
    run = simulation.run(params, parts.layout, parts.data, 0)
    size = sum(len(sent.payload) for sent in run.sent) / N_SITES
    report = next(iter(run.outcomes.values())).report
    print(
        f"  {len(X):,} × {X.shape[1]}, n_init {n_init}: {run.rounds} rounds, "
        f"{size / 1e6:.3g} MB to and from a site; start {report['start']} won after "
        f"{report['n_iterations']} iterations"
    )


def _parts(
    views: Mapping[str, FccmContext],
    R: csr_array,
    known: messages.Memberships,
) -> None:
    view = views["r1c3"]
    both_products = _products(view, R, known)
    params, order = view.session.params, view.recall(RowOrder).order
    sums = maths.aggregation(R, known.weights)
    of_sums, _ = site_state.encodings(view.session)
    later, asked = _after_a_total(views, known, R)
    source = SparseSource(R)
    parts: dict[str, Callable[[], object]] = {
        "R'U": lambda: maths.item_exponents(R, known.objects, params.lambda_w),
        "R·e": lambda: maths.aggregation(R, known.weights),
        "weights": lambda: site_state.under_way(
            view, known, R, known.shifts, repeats=0
        ),
        "encoding": lambda: of_sums.encode(sums.reshape(-1)),
        "order of rows": lambda: R[order],
        "a whole reply": lambda: FccmParty().reply(later, asked, source),
    }
    for name, part in parts.items():
        found = ratio(part, both_products, RUNS, cpu_seconds)
        print(f"  {name}: {found:.2f} × the products")


def _after_a_total(
    views: Mapping[str, FccmContext], known: messages.Memberships, R: csr_array
) -> tuple[FccmContext, messages.Add]:
    """Return where the site stands a round later, and a total: its own share alone."""
    view = views["r1c3"]
    words = encode_share(view, R, known)
    of = site_state.sum_of(view, known.number, view.transcript)
    shares = [
        share(each, words if each is view else np.zeros_like(words), of, "row")
        for each in views.values()
    ]
    later = replace(view, memory=view.memory.remember([known]))
    total = add_tagged(shares)
    asked = messages.Add(number=2, lanes=known.lanes, overflowed=[], total=total)
    return later, asked


def _memory(one_pass: Callable[[], WordArray]) -> None:
    tracemalloc.start()
    one_pass()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numbers = N_NONZERO + N_OBJECTS * N_CLUSTERS
    print(
        f"memory: {peak / 2**20:.0f} MiB beside R, {peak / (8 * numbers):.2f} × "
        "nnz + n·k numbers"
    )


if __name__ == "__main__":
    main()
