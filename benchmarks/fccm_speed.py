"""Speed and memory of `fccm` at one site, as ratios to named primitives of one run.

    python -m benchmarks.fccm_speed

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
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from benchmarks.timing import cpu_seconds, ratio
from clustering_protocols import simulation
from clustering_protocols.arrays import WordArray
from clustering_protocols.contract.party import Memory
from clustering_protocols.data import SparseSource
from clustering_protocols.preparation.alignment.digests import RowOrder
from clustering_protocols.preparation.secrets import RowSecret
from clustering_protocols.preparation.sums import share
from clustering_protocols.protocols.fccm import (
    CoClustering,
    kernels,
    messages,
    shifts,
)
from clustering_protocols.protocols.fccm.params import FccmContext
from clustering_protocols.protocols.fccm.party import (
    FccmParty,
    _encoded,
    _first,
    _sum_of,
    _under_way,
)
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.terms import Layout

N_OBJECTS, N_ITEMS, N_CLUSTERS, N_SITES = 100_000, 5_000, 20, 4
N_NONZERO = 1_000_000
GOAL = 3.0
RUNS = 9


def sites(R: csr_array) -> dict[str, FccmContext]:
    """Return where the sites stand when they have to add their first shares."""
    layout = Layout.lattice(1, N_SITES)
    params = CoClustering(n_clusters=N_CLUSTERS, lambda_u=0.01, lambda_w=1000.0)
    rows = SparseSource(R, ids=simulation.numbered(R.shape[0]))
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
    views = sites(R)
    view = views["r1c3"]
    params = view.session.params
    known = _first(view, R)
    W = np.array(known.weights)

    def both_products() -> None:
        kernels.item_exponents(R, known.objects, params.lambda_w)
        kernels.aggregation(R, W)

    def one_pass() -> WordArray:
        following = _under_way(view, known, R, known.shifts, repeats=0)
        return _encoded(view, R, following.weights)

    found = ratio(one_pass, both_products, RUNS, cpu_seconds)
    print(f"a pass: {found:.2f} × the products R'U and R·e (goal {GOAL:g})")
    _parts(views, R, known, both_products)
    _memory(one_pass)
    sys.exit(0 if found <= GOAL else 1)


def _parts(
    views: Mapping[str, FccmContext],
    R: csr_array,
    known: messages.Memberships,
    both_products: Callable[[], None],
) -> None:
    view = views["r1c3"]
    params, order = view.session.params, view.recall(RowOrder).order
    sums = kernels.aggregation(R, known.weights)
    of_sums, _ = shifts.encodings(view.session)
    later, asked = _after_a_total(views, known, R)
    source = SparseSource(R)
    parts: dict[str, Callable[[], object]] = {
        "R'U": lambda: kernels.item_exponents(R, known.objects, params.lambda_w),
        "R·e": lambda: kernels.aggregation(R, known.weights),
        "weights": lambda: _under_way(view, known, R, known.shifts, repeats=0),
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
    words = _encoded(view, R, known.weights)
    of = _sum_of(view, known.number, view.transcript)
    shares = [
        share(each, words if each is view else np.zeros_like(words), of, "row")
        for each in views.values()
    ]
    later = replace(view, memory=view.memory.remember([known]))
    asked = messages.Add(number=2, overflowed=False, total=add_tagged(shares))
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
