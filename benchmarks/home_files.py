"""What marks of rows and the audit of sums take at home, beside a party's other work.

    python -m benchmarks.home_files [--rows 1000000] [--protocols llf,dc]

A session of three parties in one process, of which the first has so many rows of sixteen
variables in a Parquet file, with ids; its home showed the same rows once before. Processor
seconds of that party, of all its threads and of children that ended, all in one run:

work    reading the table, its digest, and all answers of the protocol.
marks   marks of the rows, and the check before joining and before rows are shown.
sums    in which sums rows stood: the file that is written before each of these answers.

Then sessions of fewer rows, of which the home keeps in which sums each row stood. Ends with
1 where marks and sums take more than 5 % of the work at a million rows, or sums more than
20 ms an update.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from clustering_protocols.catalogue import parse_params
from clustering_protocols.engine import PartyEngine, TaskOutcome
from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout, Terms
from party_sdk.disclosures.sum_history import KnownRows, SummedSession, history_of
from party_sdk.party.folder import PartyFolder
from party_sdk.party.resume_checks import data_digest
from party_sdk.party.rounds import use_of
from party_sdk.tables import open_table

LAYOUT: Final = Layout.lattice(3)
OWN: Final = LAYOUT.names[0]
N_FEATURES, N_CLUSTERS, N_OTHERS = 16, 10, 1_000
FEWER_ROWS: Final = (500, 5_000, 30_000)
MOST_SHARE, MOST_MS = 0.05, 20.0
WHO: Final = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
_T = TypeVar("_T")


@dataclass
class Spent:
    """Processor seconds of one party."""

    work: float = 0.0
    marks: float = 0.0
    sums: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Return marks and sums over all other work."""
        return (self.marks + sum(self.sums)) / self.work


def timed(what: Callable[[], _T]) -> tuple[float, _T]:
    """Return processor seconds of all threads and ended children, and what was made."""
    begun = _spent()
    made = what()
    return _spent() - begun, made


def _spent() -> float:
    used = map(resource.getrusage, WHO)
    return sum(each.ru_utime + each.ru_stime for each in used)


@dataclass
class Home:
    """The home of the party that is measured."""

    path: Path
    digest: str
    spent: Spent
    n_sums: int = 0
    marks: Any = None
    has_shown: bool = False
    folders: dict[str, PartyFolder] = field(default_factory=dict)

    def show(self, terms: Terms, data: DataSource) -> None:
        """Check and keep what the session shows, as before another one did."""
        before, now = (self._folder(name) for name in ("before", "now"))
        use = use_of(before, terms, data.columns)
        before.shown.keep(use, data, allowed=True)
        use = use_of(now, terms, data.columns)
        for step in (now.shown.check, now.shown.keep):
            seconds, _ = timed(lambda step=step: step(use, data, allowed=True))
            self.spent.marks += seconds

    def _folder(self, name: str) -> PartyFolder:
        return self.folders.setdefault(name, PartyFolder(self.path, name, OWN))

    def count(self, terms: Terms, answer: TaskOutcome, data: DataSource) -> None:
        """Keep in which sums rows stood, where an answer adds some."""
        history = history_of(answer.memory, terms, OWN, data.n_rows)
        if history is None or history.n_sums == self.n_sums:
            return
        folder = self._folder("now")
        if self.marks is None:
            self.marks = KnownRows.of(folder.shown.marks(data), self.digest)
        folder.summed.count("now", SummedSession(self.marks, history), 1.0)
        self.n_sums = history.n_sums


@contextmanager
def measured(home: Home, terms: Terms) -> Iterator[None]:
    """Time the answers of one party, and what its home does before they leave."""
    honest = PartyEngine.reply

    def reply(self: PartyEngine, *given: Any, **named: Any) -> TaskOutcome:
        seconds, answer = timed(lambda: honest(self, *given, **named))
        if self.slot == OWN:
            data = given[3]
            home.spent.work += seconds
            if not home.has_shown:
                home.show(terms, data)
                home.has_shown = True
            n_sums = home.n_sums
            seconds, _ = timed(lambda: home.count(terms, answer, data))
            if home.n_sums != n_sums:
                home.spent.sums.append(seconds)
        return answer

    with patch.object(PartyEngine, "reply", reply):
        yield


def run(protocol: str, n_rows: int, folder: Path) -> Spent:
    """Play a session and return what its first party spent."""
    spent, file = Spent(), folder / "rows.parquet"
    parquet.write_table(_table(n_rows), file)
    reading, own = timed(lambda: open_table(file, id_column="id"))
    digesting, digest = timed(lambda: data_digest(own))
    spent.work = reading + digesting
    rng = np.random.default_rng(1)
    data: dict[str, DataSource] = {OWN: own}
    for slot in LAYOUT.names[1:]:
        data[slot] = MatrixSource(_rows(rng, N_OTHERS), columns=own.columns)
    params = parse_params(protocol, {"n_clusters": N_CLUSTERS})
    session = Session(params, LAYOUT, data, 0, choices={OWN: {"sums_limit": 1.0}})
    home = Home(folder, digest, spent)
    with measured(home, session.session.terms):
        session.to_the_end()
    return spent


def _rows(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    centres = np.random.default_rng(0).normal(scale=2, size=(N_CLUSTERS, N_FEATURES))
    drawn = centres[rng.integers(0, N_CLUSTERS, n_rows)]
    return np.round(drawn + rng.normal(size=drawn.shape), 3)


def _table(n_rows: int) -> pa.Table:
    rows = _rows(np.random.default_rng(0), n_rows)
    ids = [f"patient {number}" for number in range(n_rows)]
    columns = {f"x{place}": column for place, column in enumerate(rows.T)}
    return pa.table({"id": ids, **columns})


def main() -> int:
    """Print seconds and ratios of one run; 1 above a goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--protocols", default="llf,dc")
    given = parser.parse_args()
    failed = False
    sizes = [(name, given.rows) for name in given.protocols.split(",")]
    for protocol, n_rows in [*sizes, *(("llf", rows) for rows in FEWER_ROWS)]:
        with tempfile.TemporaryDirectory() as folder:
            spent = run(protocol, n_rows, Path(folder))
        slowest = max(spent.sums, default=0.0) * 1e3
        failed |= slowest > MOST_MS
        failed |= n_rows >= given.rows and spent.share > MOST_SHARE
        print(
            f"{protocol:4} {n_rows:8} rows: work {spent.work:6.2f} s, marks "
            f"{spent.marks:5.3f} s, sums {sum(spent.sums):5.3f} s in {len(spent.sums)} "
            f"({slowest:.1f} ms at most): {spent.share:.1%}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
