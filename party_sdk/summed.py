"""In which sums the rows of a home stood, over all its sessions.

Rows that one session's sums do not single out may follow from the sums of two: of the
same table, or of one with a row more. So a home keeps, for each session, the marks of its
rows and their clusters in every sum (``sums/``), and answers no sum after which more of
the rows would follow from all of them together than its policy allows.

Of tables of more than 32,768 rows only the number of sums is kept: each then counts as a
row that follows, and only exactly the same table is known again. Of the oldest sessions
no more is left than numbers and marks, once all take more than 64 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import IntArray, WordArray
from clustering_protocols.contract import RowHistory
from clustering_protocols.contract.assignment import Assignment
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.row_history import most_following
from clustering_protocols.errors import GuardRefused
from clustering_protocols.terms import Terms
from party_sdk._files import private_folder, waiting
from party_sdk.sealing import SecretFiles

MOST_BYTES: Final = 1 << 26


class Summed(NamedTuple):
    """The rows of one session, and in which sums they stood.

    Attributes
    ----------
    marks : uint64 array of shape (n,)
        Of each row; of a table without a history one of the table.
    n_rows : int
    history : RowHistory
    """

    marks: WordArray
    n_rows: int
    history: RowHistory


def table_mark(digest: str) -> WordArray:
    """Return a mark (1,) of a whole table, of its digest (hex)."""
    return np.array([int(digest[:16], 16)], dtype=np.uint64)


class SummedRows:
    """What the sums of all sessions of one home tell of its rows."""

    def __init__(self, home: Path) -> None:
        self._home, self._folder = home, home / "sums"
        self._files = SecretFiles(home)
        self._read: dict[Path, tuple[int, Summed]] = {}

    def count(self, use: str, rows: Summed, share: float) -> None:
        """Keep in which sums rows stood, before the newest of these is answered.

        Parameters
        ----------
        use : str
            Names session, slot and agreement.
        rows : Summed
            Of this session, the sum that is about to be answered among them.
        share : float
            The policy's ``sums_limit``.

        Raises
        ------
        GuardRefused
            If too many rows would follow from these sums and those of other sessions.
        """
        own = self._folder / f"{sha256(use.encode()).hexdigest()[:32]}.arrays"
        private_folder(self._folder)
        with waiting(self._home / "sums.lock"):
            others = [each for path, each in self._others(own)]
            _check(rows, others, share)
            self._files.write(own, _encoded(rows))
            self._condense(own)

    def _others(self, own: Path) -> Iterator[tuple[Path, Summed]]:
        """Yield what other sessions summed, oldest first; each file is read once."""
        for path in sorted(self._folder.glob("*.arrays"), key=_age):
            if path == own:
                continue
            age = _age(path)
            if self._read.get(path, (0, None))[0] != age:
                self._read[path] = age, _decoded(self._files.read(path))
            yield path, self._read[path][1]

    def _condense(self, own: Path) -> None:
        """Keep the number of sums alone of the oldest sessions, beyond the bytes."""
        sizes = {path: path.stat().st_size for path in self._folder.glob("*.arrays")}
        left = sum(sizes.values())
        for path, summed in list(self._others(own)):
            if left <= MOST_BYTES:
                return
            history = summed.history.without_labels
            short = _encoded(summed._replace(history=history))
            left -= sizes[path] - len(short)
            self._files.write(path, short)


def history_of(
    memory: Memory, terms: Terms, slot: str, n_rows: int
) -> RowHistory | None:
    """Return in which sums own rows stand by a party's memory; None if in none.

    A protocol that adds up by clusters keeps a history of every run. Of others the sums
    of a profile are of the final labels.
    """
    n_runs = 0 if terms.evaluation is None else len(terms.evaluation.n_clusters)
    runs = [None, *range(n_runs)]
    kept = [memory.within(run).get(RowHistory) for run in runs]
    found = [each for each in kept if each is not None]
    if found:
        return max(found, key=lambda each: each.n_sums)
    labelled = memory.get(Assignment)
    adds_up = terms.layout.adds_up(terms.layout.slot(slot).column)
    if labelled is None or terms.release is None or not adds_up:
        return None
    return RowHistory.of_none(n_rows).after(labelled.labels)


def together(rows: Summed, others: list[Summed]) -> Summed:
    """Return rows with the sums of all others of which rows hang together with them.

    The first rows are those of this session; then come rows that only others held.
    """
    marks, n_rows, history = rows
    while near := next((o for o in others if np.isin(o.marks, marks).any()), None):
        others = [other for other in others if other is not near]
        is_new = ~np.isin(near.marks, marks)
        if history.whole and near.history.whole:
            before = np.arange(len(marks))
            added = np.full(int(is_new.sum()), -1, dtype=np.int64)
            marks = np.concatenate([marks, near.marks[is_new]])
            history = history.over(np.concatenate([before, added]))
            history = history.joined(near.history.over(_places(marks, near.marks)))
        else:
            history = history.joined(near.history.without_labels)
        n_rows = max(n_rows, near.n_rows, len(marks))
    return Summed(marks, n_rows, history)


def _check(rows: Summed, others: list[Summed], share: float) -> None:
    found = together(rows, others)
    most = most_following(share, found.n_rows)
    following = found.history.n_following(most)
    if following > most:
        raise GuardRefused(
            f"{following} of your {found.n_rows} rows could be computed from these "
            "sums and those of earlier sessions over the same rows; 'sums_limit' is "
            f"{share:g}, {most} rows. Take part with other rows."
        )


def _places(marks: WordArray, there: WordArray) -> IntArray:
    """Return at which place each mark (n,) is found; -1 where it is not."""
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there, marks, sorter=order)
    found = order[np.minimum(place, len(there) - 1)]
    return np.where(there[found] == marks, found, -1)


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def _encoded(rows: Summed) -> bytes:
    said = {"n_rows": rows.n_rows, "history": rows.history.values}
    return codec.encode(said, {"marks": rows.marks, **rows.history.arrays})


def _decoded(content: bytes) -> Summed:
    header, arrays = codec.decode(content)
    found = {name: np.array(each) for name, each in arrays.items()}
    marks = found.pop("marks")
    history = RowHistory.model_validate({**header["history"], **found})
    return Summed(marks, header["n_rows"], history)
