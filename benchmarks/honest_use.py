"""How often a home refuses the second of two honest sessions over one table.

    python -m benchmarks.honest_use

One of three homes has 300 rows of a table of scikit-learn, with or without ids. In the
second session the table is the same, or has a field more, 5 % of new rows, or both; the
parameters are the same or others. The clusters are Lloyd's over the rows of all homes.
Prints each kind of pair with its refusals; fails if more than one in twenty is refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn import datasets

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import RowHistory
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.session_terms import draw_up_terms
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout, SessionRequest, read_terms
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy

N_ROWS: Final = 300
TABLES: Final = ("iris", "wine", "breast_cancer", "diabetes", "digits")
CHANGES: Final = ("the same table", "a field more", "5 % new", "5 % replaced", "both")
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "the same": {"n_clusters": 3, "publish": "sizes"},
    "a cluster more": {"n_clusters": 4, "publish": "sizes"},
    "published": {"n_clusters": 3, "publish": "centroids"},
}
MOST: Final = 1 / 20
"""The share of second sessions that may be refused."""


class Table(NamedTuple):
    """The rows of one home, their columns and their ids."""

    rows: FloatArray
    names: tuple[str, ...]
    ids: tuple[str, ...] | None


def draw_rows(rng: np.random.Generator, name: str, n: int) -> FloatArray:
    """Return n rows of a table with slight noise, repeated if it has fewer."""
    X: FloatArray = getattr(datasets, f"load_{name}")().data[:, :12]
    found = X[rng.choice(len(X), n, replace=len(X) < n)]
    return found + rng.normal(scale=1e-3, size=found.shape) * X.std(axis=0)


def alter(
    rng: np.random.Generator, table: Table, change: str, new: FloatArray
) -> Table:
    """Return a table as a kind of change leaves it; new: rows to take new ones from."""
    rows, names, ids = table
    n, n_new = len(rows), max(1, len(rows) // 20)
    kept = np.arange(n)
    if change == "5 % replaced":
        kept = np.sort(rng.choice(n, n - n_new, replace=False))
    if change in {"5 % new", "5 % replaced", "both"}:
        rows = np.vstack([rows[kept], new[:n_new]])
        more = tuple(f"new {row}" for row in range(n_new))
        ids = None if ids is None else (*(ids[row] for row in kept), *more)
    if change not in {"a field more", "both"}:
        rows, names = rows[:, :-1], names[:-1]
    return Table(rows, names, ids)


def partitions(X: FloatArray, n: int, k: int, seed: int) -> Iterator[IntArray]:
    """Yield the clusters of the first n rows before each update of Lloyd's c-means."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0).clip(1e-9)
    V = Z[np.random.default_rng(seed).choice(len(Z), k, replace=False)]
    for _ in range(100):
        labels = np.square(Z[:, None] - V).sum(axis=2).argmin(axis=1)
        yield labels[:n]
        moved = V.copy()
        for c in np.unique(labels):
            moved[c] = Z[labels == c].mean(axis=0)
        if np.linalg.norm(moved - V) <= 1e-5:
            return
        V = moved


def play(
    home: Path, session: str, table: Table, others: FloatArray, given: dict[str, Any]
) -> None:
    """Play one session at a home; raise GuardRefused if the home refuses it."""
    request = SessionRequest(
        protocol={
            "name": "llf",
            "params": LosslessFederated(**given).model_dump(mode="json"),
        },
        layout=Layout.lattice(3),
        dictionary=(numeric_schema(table.names, -1e6, 1e6),),
        seed=0,
    )
    terms = read_terms(draw_up_terms("s", request))
    history, policy = History(home), Policy()
    rows = history.rows_of(MatrixSource(table.rows, columns=table.names, ids=table.ids))
    use = Use.from_terms(terms, session, "r1c1", table.names)
    history.check(use, rows, policy)
    summed = RowHistory.empty(len(table.rows))
    X = np.vstack([table.rows, others[:, : table.rows.shape[1]]])
    for labels in partitions(X, len(table.rows), given["n_clusters"], len(session)):
        summed = summed.after_partition(labels)
    history.record(use, rows, policy, summed)


def refusal_of_second(
    rng: np.random.Generator,
    table: Table,
    change: str,
    others: FloatArray,
    given: dict[str, Any],
) -> str:
    """Return why the second of two sessions is refused; an empty text if it is not."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        first = alter(rng, table, CHANGES[0], others)
        play(home, "one", first, others, PARAMETERS["the same"])
        try:
            play(home, "second", alter(rng, table, change, others), others, given)
        except GuardRefused as refused:
            return refused.detail
    return ""


def pairs() -> Iterator[tuple[str, str]]:
    """Yield what changes between two sessions, and why the second is refused, if it is."""
    n = N_ROWS
    for name, has_ids in product(TABLES, (False, True)):
        rng = np.random.default_rng(0)
        X = draw_rows(rng, name, 3 * n)
        names = tuple(f"x{number}" for number in range(X.shape[1]))
        ids = tuple(map(str, range(n))) if has_ids else None
        table = Table(X[:n], names, ids)
        for change, (said, given) in product(CHANGES, PARAMETERS.items()):
            why = refusal_of_second(rng, table, change, X[n:], given)
            yield f"{change}; parameters: {said}", why


def main() -> int:
    """Print the refusals; return 1 if there are too many."""
    found: dict[str, list[str]] = {}
    for kind, why in pairs():
        found.setdefault(kind, []).append(why)
    for kind, reasons in found.items():
        refused = Counter(filter(None, reasons))
        print(f"{refused.total():3} of {len(reasons)}  {kind}")
        for why, n in refused.items():
            print(f"        {n} × {why}")
    n_pairs = sum(map(len, found.values()))
    n_refused = sum(why != "" for reasons in found.values() for why in reasons)
    print(f"{n_refused} of {n_pairs} refused ({n_refused / n_pairs:.1%})")
    return int(n_refused > MOST * n_pairs)


if __name__ == "__main__":
    sys.exit(main())
