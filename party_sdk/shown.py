"""What the tables of a home showed to whom, so that sessions are safe together.

Who takes published means of nearly the same rows off earlier ones reads the few that
differ; who reads means of clusters and has rows up to a motion turns these back into
rows. So a home keeps marks of the rows of every table that showed something, with the
keys of analyst and coordinator and the kinds that they got (``shown.arrays``), and
refuses, or asks, before a session that does not go with an earlier one. What changes at
other parties it cannot see, nor that two analysts talk: risk sentences say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clustering_protocols import house
from clustering_protocols.contract.shown import REFUSED, SENTENCES, Kind
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused
from clustering_protocols.randomness import derive_key
from party_sdk._files import waiting
from party_sdk.row_marks import RowMarks, marks_of, row_key
from party_sdk.shown_files import ShownFile, ShownTable, Use

_DECIDE = f"Decide --choice {house.SHOWN_TOGETHER}=true if it may."
_THIRD = 2
"""So many uses that publish of exactly the same rows, and the next one is asked about."""


class ShownTables:
    """Marks of the rows that one home has shown, and what of them to whom."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = ShownFile(home)

    def marks(self, data: DataSource) -> RowMarks:
        """Return the marks of a table's rows, in their order."""
        return marks_of(row_key(self._home), data)

    def key(self, purpose: str) -> bytes:
        """Return 32 secret bytes of the home for one purpose."""
        return derive_key(row_key(self._home), purpose)

    def check(self, use: Use, data: DataSource, *, allowed: bool) -> None:
        """Refuse a use of rows that does not go with what was shown of them before.

        Parameters
        ----------
        use : Use
            What the session at hand will show.
        data : DataSource
            What arrives of the party's table.
        allowed : bool
            Whether the operator has agreed to what is only asked about.

        Raises
        ------
        GuardRefused
        """
        tables = self._file.read()
        if (use.outside or use.published) and tables:
            _check(use, tables, self.marks(data), allowed=allowed)

    def keep(self, use: Use, data: DataSource, *, allowed: bool) -> None:
        """Keep what a session shows of rows, before any of it leaves.

        It is checked once more, as sessions that were joined at the same time may have
        shown something since; see :meth:`check`.
        """
        if not (use.outside or use.published):
            return
        marks = self.marks(data)
        with waiting(self._file.path.with_name("shown.lock")):
            tables = self._file.read()
            before = next((t for t in tables if t.is_of(marks)), None)
            if before is not None and use in before.uses:
                return
            _check(use, tables, marks, allowed=allowed)
            if before is None:
                tables = [*tables, ShownTable.of(marks, (use,))]
            else:
                tables[tables.index(before)] = before.and_for(use)
            self._file.write(tables)


def _check(
    use: Use, tables: list[ShownTable], marks: RowMarks, *, allowed: bool
) -> None:
    known = [table for table in tables if table.is_like(marks)]
    if use.published:
        _check_differences(use, known, marks)
    for question in () if allowed else _questions(use, known, marks):
        raise GuardRefused(f"{question} {_DECIDE}")


def _check_differences(use: Use, known: list[ShownTable], marks: RowMarks) -> None:
    """Refuse to publish means of rows of which few are new or gone since another use."""
    for table in known:
        if not any(each.published for each in table.besides(use)):
            continue
        if any(0 < n < use.smallest for n in table.n_changed(marks)):
            raise GuardRefused(
                "Means of nearly the same rows were published before: whoever takes "
                "them off the new ones reads the few that differ. At least "
                f"{use.smallest} rows have to be new or gone, or none."
            )


def _questions(use: Use, known: list[ShownTable], marks: RowMarks) -> Iterator[str]:
    """Yield what only the operator can decide, a sentence each."""
    for table in known:
        for before in table.besides(use):
            if use.has_reader_of(before):
                yield from _of_kinds(before, use)
    same = [table for table in known if use.published and table.is_same(marks)]
    published = [each for t in same for each in t.besides(use) if each.published]
    if len(published) >= _THIRD:
        yield (
            f"Means of these rows were published {len(published)} times before: each "
            "time narrows down single rows."
        )


def _of_kinds(before: Use, now: Use) -> Iterator[str]:
    """Yield which kinds one reader would have together over two sessions."""
    for pair in REFUSED:
        first, then = pair & before.outside, pair & now.outside
        if first != pair and then != pair and first | then == pair:
            yield (
                "The same analyst or coordinator got of these rows "
                f"{SENTENCES[next(iter(first))]}: with {SENTENCES[next(iter(then))]} "
                "it can compute them."
            )
    if Kind.GEOMETRY in before.outside & now.outside and before.way != now.way:
        yield (
            "The same analyst or coordinator got these rows up to a motion by another "
            "protocol, or of other columns: together they show more of each row."
        )
