"""In which sums the rows of a home stood, over all its sessions.

Rows that one session's sums do not single out may follow from the sums of two: of the
same table, or of one with a row more. So a home keeps, for each session, the marks of its
rows and their clusters in every sum (``sums/``), and answers no sum after which more of
the rows would follow from all of them together than its policy allows.

Of tables of more than 32,768 rows only the number of sums is kept: each then counts as a
row that follows. So it does of a table that is known by a column, and not by its rows: one
without ids of which other columns are read. Of the oldest sessions no more is left than
numbers and marks, once all take more than 64 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import RowHistory
from clustering_protocols.contract.assignment import Assignment
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.row_history import MOST_ROWS, most_following
from clustering_protocols.contract.selection import OUTSIDE, Selection
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.terms.terms import Terms
from party_sdk.disclosures.column_sketches import have_one_in_common
from party_sdk.disclosures.row_marks import RowMarks
from party_sdk.home.files import (
    private_folder,
    read_private,
    wait_for_lock,
    write_private,
)

MOST_BYTES: Final = 1 << 26


class KnownRows(NamedTuple):
    """By what the rows of one session are known again.

    marks: uint64 (n,); of each row; of a table of which no history is kept one of the
        table.
    sketches: mapping of str to uint64 (2, m); of each column; see
        :mod:`party_sdk.disclosures.column_sketches`.
    """

    marks: WordArray
    sketches: Mapping[str, WordArray]
    n_rows: int

    @classmethod
    def of(cls, marks: RowMarks, digest: str) -> KnownRows:
        """Return what a table is known by, from the marks of its rows.

        ``digest`` is that of the table (hex), for those of which no history is kept.
        """
        n_rows = len(marks.cells)
        if n_rows <= MOST_ROWS:
            return cls(marks.rows, marks.sketches, n_rows)
        whole = np.array([int(digest[:16], 16)], dtype=np.uint64)
        return cls(whole, marks.sketches, n_rows)


class SummedSession(NamedTuple):
    """The rows of one session, and in which sums they stood."""

    known: KnownRows
    history: RowHistory


class SummedRows:
    """What the sums of all sessions of one home tell of its rows."""

    def __init__(self, home: Path) -> None:
        self._home, self._folder = home, home / "sums"
        self._read: dict[Path, tuple[int, SummedSession]] = {}

    def count(self, use: str, rows: SummedSession, share: float) -> None:
        """Keep in which sums rows stood, before the newest of these is answered.

        use: names session, slot and agreement.
        rows: of this session, the sum that is about to be answered among them.
        share: the policy's ``sums_limit``.

        Raises GuardRefused if too many rows would follow from these sums and those of
            other sessions.
        """
        own = self._folder / f"{sha256(use.encode()).hexdigest()[:32]}.arrays"
        private_folder(self._folder)
        with wait_for_lock(self._home / "sums.lock"):
            others = [each for path, each in self._others(own)]
            _check(rows, others, share)
            write_private(own, _encode_session(rows))
            self._condense(own)

    def _others(self, own: Path) -> Iterator[tuple[Path, SummedSession]]:
        """Yield what other sessions summed, oldest first; each file is read once."""
        for path in sorted(self._folder.glob("*.arrays"), key=_age):
            if path == own:
                continue
            age = _age(path)
            if self._read.get(path, (0, None))[0] != age:
                self._read[path] = age, _decode_session(read_private(path))
            yield path, self._read[path][1]

    def _condense(self, own: Path) -> None:
        """Keep the number of sums alone of the oldest sessions, beyond the bytes."""
        sizes = {path: path.stat().st_size for path in self._folder.glob("*.arrays")}
        left = sum(sizes.values())
        for path, summed in list(self._others(own)):
            if left <= MOST_BYTES:
                return
            history = summed.history.without_labels
            short = _encode_session(summed._replace(history=history))
            left -= sizes[path] - len(short)
            write_private(path, short)


def history_of(
    memory: Memory, terms: Terms, slot: str, n_rows: int
) -> RowHistory | None:
    """Return in which sums own rows stand by a party's memory; None if in none.

    A protocol that adds up by clusters keeps a history of every run. Of others the sums
    of pooled moments and of fillings are of all rows that take part, and those of a
    profile of the final labels.
    """
    n_runs = 1 if terms.evaluation is None else len(terms.evaluation.n_clusters)
    kept = [memory.scope_to_run(run).get(RowHistory) for run in range(n_runs)]
    found = [each for each in kept if each is not None]
    if found:
        return max(found, key=lambda each: each.n_sums)
    history = RowHistory.of_none(n_rows)
    chosen = memory.get(Selection)
    rows = np.arange(n_rows) if chosen is None else chosen.rows
    for labels in _partitions(memory, terms, slot, len(rows)):
        placed = np.full(n_rows, OUTSIDE, dtype=np.int64)
        placed[rows] = labels
        history = history.after(placed)
    return history if history.n_sums else None


def _partitions(
    memory: Memory, terms: Terms, slot: str, n_rows: int
) -> Iterator[IntArray]:
    """Yield the clusters of rows that take part, for each time that they are added up."""
    if memory.get(RowsSummed) is not None:
        yield np.zeros(n_rows, dtype=np.int64)
    labelled = memory.get(Assignment)
    adds_up = terms.layout.adds_up(terms.layout.slot(slot).column)
    if labelled is not None and terms.release is not None and adds_up:
        yield labelled.labels


def together(rows: SummedSession, others: Sequence[SummedSession]) -> SummedSession:
    """Return rows with the sums of all others of which rows hang together with them.

    The first rows are those of this session; then come rows that only others held. Of
    others that are known by a column alone the sums are counted.
    """
    (marks, sketches, n_rows), history = rows
    left = list(others)
    while near := next((o for o in left if np.isin(o.known.marks, marks).any()), None):
        left = [other for other in left if other is not near]
        theirs = near.known.marks
        new = theirs[~np.isin(theirs, marks)]
        added = np.full(len(new), -1, dtype=np.int64)
        history = history.reindex(np.concatenate([np.arange(len(marks)), added]))
        marks = np.concatenate([marks, new])
        history = history.merge(near.history.reindex(_places(marks, theirs)))
        n_rows = max(n_rows, near.known.n_rows, len(marks))
    for other in left:
        if have_one_in_common(sketches, other.known.sketches):
            apart = _places(marks, other.known.marks)
            history = history.merge(other.history.without_labels.reindex(apart))
            n_rows = max(n_rows, other.known.n_rows)
    return SummedSession(KnownRows(marks, sketches, n_rows), history)


def _check(rows: SummedSession, others: Sequence[SummedSession], share: float) -> None:
    found = together(rows, others)
    n_rows = found.known.n_rows
    most = most_following(share, n_rows)
    following = found.history.n_following(most)
    if following > most:
        raise GuardRefused(
            f"{following} of your {n_rows} rows could be computed from these "
            "sums and those of earlier sessions over the same rows; 'sums_limit' is "
            f"{share:g}, {most} rows. Take part with other rows; a table with ids "
            "(--id-column) is known row by row, whatever its columns."
        )


def _places(marks: WordArray, there: WordArray) -> IntArray:
    """Return at which place each mark (n,) is found; -1 where it is not."""
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there, marks, sorter=order)
    found = order[np.minimum(place, len(there) - 1)]
    return np.where(there[found] == marks, found, -1)


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def _encode_session(rows: SummedSession) -> bytes:
    known, history = rows
    said = {"n_rows": known.n_rows, "history": history.values}
    arrays = {f"column.{mark}": found for mark, found in known.sketches.items()}
    return codec.encode(said, {"marks": known.marks, **arrays, **history.arrays})


def _decode_session(content: bytes) -> SummedSession:
    header, arrays = codec.decode(content)
    found = {name: np.array(each) for name, each in arrays.items()}
    marks = found.pop("marks")
    columns = [name for name in found if name.startswith("column.")]
    sketches = {name.removeprefix("column."): found.pop(name) for name in columns}
    history = RowHistory.model_validate({**header["history"], **found})
    return SummedSession(KnownRows(marks, sketches, header["n_rows"]), history)
