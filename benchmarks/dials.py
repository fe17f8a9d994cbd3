"""Both ends of two dials: `dimensions` of `dc`, `coordinates` of `pqmds`.

    python -m benchmarks.dials [--protocols NAME …] [--sets NAME …] [--seeds N] [--rows N]

Sets, samples and layouts are those of `benchmarks.evidence_fidelity`, but for the
columns: at most 256 of a set are drawn. Every cell is `one end → the other`.

dc      all_but_one → all. Fidelity; the share of a party's rows that an analyst with one
        party of its column group rebuilds within 10 % (the party's own self-check); and
        what the analyst alone finds in the reduced rows by principal or independent
        components: the largest |r| of a component to a feature, median over features.
        Both are means over parties of the first split; `–` where a party has fewer than
        five rows for each column.
pqmds   1 → all. Four parties, or as many as have two columns each. Fidelity; R² of a
        feature that is fitted linearly to its subspace's codes; and the largest |r| of a
        feature to an independent component of them. Medians over features.

Ends with 1 if `dc` loses anything with all dimensions, or `pqmds` more with all
coordinates than with one in the mean over sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from benchmarks.evidence_fidelity import (
    LAYOUTS,
    ONLY_COUNTS,
    PARTIES,
    SETS,
    here,
    parameters,
    same_units,
    way_of,
)
from benchmarks.omnifc_fidelity import sample
from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.dc import messages
from clustering_protocols.protocols.pqmds import ProductQuantisation, kernels, subspaces
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

Matrix = NDArray[np.float64]

DIMENSIONS = ("all_but_one", "all")
WAYS = ("kmeans", "spectral")
SUB_DIMS = (2, 4)
WIDE = 256
REBUILT = "  rows within 10 %, share"
ROWS_PER_COLUMN = 5
NOTHING_LOST = 1.0


class Ends(NamedTuple):
    """A figure at both ends of a dial; None where it is refused, or not measured."""

    less: float | None
    all: float | None

    @property
    def cell(self) -> str:
        """Return the cell of a table."""
        return " → ".join("–" if end is None else f"{end:.3f}" for end in self)


Line = dict[str, Ends]


def _drawn(name: str, rows: int) -> tuple[Matrix, NDArray[np.int64]]:
    """Return so many rows of a set, and not too many of its columns."""
    X, classes = sample(name, rows)
    if X.shape[1] <= WIDE:
        return X, classes
    columns = np.random.default_rng(0).choice(X.shape[1], WIDE, replace=False)
    return X[:, np.sort(columns)], classes


# dc


def dimensions(name: str, seeds: int, rows: int) -> Line:
    """Return what is measured of `dc` on one set, by the heading of its column."""
    X, classes = _drawn(name, rows)
    found: Line = {}
    for partitioning, layout in LAYOUTS.items():
        if layout.n_column_groups > X.shape[1]:
            continue
        for way in WAYS:
            given = parameters("dc", way_of("dc", way, partitioning), X, classes)
            ends = [
                _fidelity(given | {"dimensions": d}, X, layout, seeds)
                for d in DIMENSIONS
            ]
            found[f"{partitioning} {way}"] = Ends(*ends)
        given = {"n_clusters": len(np.unique(classes))}
        seen = [_exposed(given | {"dimensions": d}, X, layout) for d in DIMENSIONS]
        found[f"{partitioning} rebuilt"] = Ends(*(rebuilt for rebuilt, _ in seen))
        found[f"{partitioning} unmixed"] = Ends(*(unmixed for _, unmixed in seen))
    return found


def _fidelity(
    given: dict[str, Any], X: Matrix, layout: Layout, seeds: int, protocol: str = "dc"
) -> float | None:
    """Return the mean fidelity over splits; None where the session is refused."""
    params = catalogue.parse_params(protocol, given)
    choices = same_units(layout)
    parts = [simulation.split(X, layout, seed) for seed in range(seeds)]
    try:
        runs = [
            simulation.evaluate(params, X, part, seed, choices=choices)
            for seed, part in enumerate(parts)
        ]
    except CoterieError:
        return None
    return float(np.mean([run.fidelity for run in runs]))


def _exposed(
    given: dict[str, Any], X: Matrix, layout: Layout
) -> tuple[float | None, float | None]:
    """Return the share rebuilt and what is unmixed, means over the parties of a split."""
    parts = simulation.split(X, layout, 0)
    rebuilt, unmixed = [], []
    try:
        params, choices = catalogue.parse_params("dc", given), same_units(layout)
        running = Session(params, layout, parts.data, 0, choices=choices)
        running.until(messages.Project)
        for slot in layout.names:
            answer = running.answer(slot)
            rebuilt.append(answer.notes[REBUILT])
            uploaded = packets.read(answer.contribution).arrays["rows"]
            truth = matrix(running.data[slot])[running.recall(slot, RowOrder).order]
            unmixed.append(_unmixed(uploaded, truth))
    except CoterieError:
        return None, None
    return float(np.mean(rebuilt)), _mean(unmixed)


def _unmixed(uploaded: Matrix, truth: Matrix) -> float | None:
    """Return the median over features of the largest |r| to a component."""
    if len(truth) < ROWS_PER_COLUMN * truth.shape[1]:
        return None
    guesses = [PCA().fit_transform(uploaded), _independent(uploaded)]
    return float(np.median(_correlations(np.hstack(guesses), truth)))


def _independent(mixed: Matrix) -> Matrix:
    """Return the independent components of the directions in which rows vary."""
    whitened = PCA(whiten=True).fit(mixed)
    rank = int((whitened.explained_variance_ > 1e-12 * mixed.var()).sum())
    ica = FastICA(max(rank, 1), whiten="unit-variance", max_iter=400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        components: Matrix = ica.fit_transform(PCA(max(rank, 1)).fit_transform(mixed))
    return components


def _correlations(guesses: Matrix, truth: Matrix) -> Matrix:
    """Return the largest |r| of each feature that varies to a guess that does."""
    guesses = guesses[:, guesses.std(axis=0) > 0]
    truth = truth[:, truth.std(axis=0) > 0]
    both = np.abs(np.corrcoef(guesses.T, truth.T))
    best: Matrix = both[: guesses.shape[1], guesses.shape[1] :].max(axis=0)
    return best


# pqmds


def coordinates(name: str, seeds: int, rows: int) -> Line:
    """Return what is measured of `pqmds` on one set, by the heading of its column."""
    X, classes = _drawn(name, rows)
    layout = Layout.lattice(1, min(PARTIES, X.shape[1] // 2))
    found: Line = {}
    for sub_dim in SUB_DIMS:
        given = {"n_clusters": len(np.unique(classes)), "sub_dim": sub_dim}
        ends = [given | {"coordinates": c} for c in (1, sub_dim)]
        fidelities = [_fidelity(end, X, layout, seeds, "pqmds") for end in ends]
        told = [_told(ProductQuantisation.model_validate(end), X) for end in ends]
        found[f"sub_dim {sub_dim} fidelity"] = Ends(*fidelities)
        found[f"sub_dim {sub_dim} R²"] = Ends(*(r2 for r2, _ in told))
        found[f"sub_dim {sub_dim} unmixed"] = Ends(*(unmixed for _, unmixed in told))
    return found


def _told(params: ProductQuantisation, X: Matrix) -> tuple[float, float]:
    """Return medians over features of R² given the codes, and of the unmixed |r|."""
    codes = kernels.encode(params, X, KeyedStream(bytes(32))).codes
    r2: list[float] = []
    unmixed: list[float] = []
    begin = 0
    for features, width in subspaces.of(params, X.shape[1]):
        own, begin = codes[:, begin : begin + width], begin + width
        truth = X[:, features][:, X[:, features].std(axis=0) > 0]
        if truth.shape[1]:
            fitted = LinearRegression().fit(own, truth).predict(own)
            r2 += list(1 - ((truth - fitted) ** 2).mean(axis=0) / truth.var(axis=0))
            unmixed += list(_correlations(_independent(own), truth))
    return float(np.median(r2)), float(np.median(unmixed))


# Tables

MEASURED = {"dc": dimensions, "pqmds": coordinates}
TABLES = {
    "dc": {
        "fidelity": [f"{p} {w}" for p in LAYOUTS for w in WAYS],
        "an analyst with one party: rows within 10 %; alone: |r|": [
            f"{p} {what}" for p in LAYOUTS for what in ("rebuilt", "unmixed")
        ],
    },
    "pqmds": {
        "fidelity, and what codes give": [
            f"sub_dim {s} {what}"
            for s in SUB_DIMS
            for what in ("fidelity", "R²", "unmixed")
        ],
    },
}


def measure(protocol: str, name: str, seeds: int, rows: int) -> tuple[str, str, Line]:
    """Return what is measured of a protocol on a set."""
    with threadpool_limits(1):
        return protocol, name, MEASURED[protocol](name, seeds, rows)


def measure_all(
    protocols: Iterable[str], sets: Sequence[str], seeds: int, rows: int
) -> Iterator[tuple[str, str, Line]]:
    """Yield what is measured of protocols on sets, in their order, on two processors."""
    with ProcessPoolExecutor(2) as pool:
        waiting = [
            pool.submit(measure, protocol, name, seeds, rows)
            for protocol in protocols
            for name in sets
        ]
        for future in waiting:
            yield future.result()


def table(columns: Sequence[str], lines: dict[str, Line]) -> Iterator[str]:
    """Yield the lines of a table, the mean of its columns last."""
    yield f"| set | {' | '.join(columns)} |"
    yield f"| --- {'| --- ' * len(columns)}|"
    for name, line in lines.items():
        cells = [line[c].cell if c in line else "" for c in columns]
        yield f"| {name} | {' | '.join(cells)} |"
    yield f"| mean | {' | '.join(mean(lines.values(), c).cell for c in columns)} |"


def mean(lines: Iterable[Line], column: str) -> Ends:
    """Return the mean of a column over the sets that have both ends."""
    both = [
        line[column] for line in lines if column in line and None not in line[column]
    ]
    return Ends(_mean([ends.less for ends in both]), _mean([ends.all for ends in both]))


def _mean(figures: Sequence[float | None]) -> float | None:
    known = [each for each in figures if each is not None]
    return float(np.mean(known)) if known else None


def falls_short(protocol: str, lines: dict[str, Line]) -> bool:
    """Return whether the second end does not do what it is for."""
    columns = [c for columns in TABLES[protocol].values() for c in columns]
    if protocol == "pqmds":
        means = [mean(lines.values(), c) for c in columns if c.endswith("fidelity")]
        return any((m.all or 0) <= (m.less or 0) for m in means)
    ends = [
        line[c].all
        for line in lines.values()
        for c in columns
        if c in line and c.split()[1] in WAYS
    ]
    return any(end is not None and round(end, 4) < NOTHING_LOST for end in ends)


def main() -> int:
    """Print the tables."""
    sets = [name for name in SETS if name not in ONLY_COUNTS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocols", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--sets", nargs="+", default=sets, choices=sets)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=600)
    given = parser.parse_args()
    found: dict[str, dict[str, Line]] = {name: {} for name in given.protocols}
    for protocol, name, line in measure_all(
        given.protocols, here(given.sets), given.seeds, given.rows
    ):
        found[protocol][name] = line
        cells = ", ".join(f"{column} {ends.cell}" for column, ends in line.items())
        print(f"{protocol} {name}: {cells}", file=sys.stderr, flush=True)
    for protocol, lines in found.items():
        for title, columns in TABLES[protocol].items():
            print(f"\n{protocol}: {title}\n")
            print(*table(columns, lines), sep="\n")
    return int(any(falls_short(protocol, lines) for protocol, lines in found.items()))


if __name__ == "__main__":
    sys.exit(main())
