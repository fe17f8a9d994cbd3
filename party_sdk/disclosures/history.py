"""What the tables of a home showed to whom, so that sessions are safe together.

Who takes published means of nearly the same rows off earlier ones reads the few that
differ; who reads means of clusters and has rows up to a motion, or in a shared space,
turns these back into rows. So a home keeps marks of the rows of every table that showed
something, with the keys of analyst, coordinator and other parties and the kinds that they
got (``shown.arrays``), and refuses, or asks, before a session that does not go with an
earlier one. What changes at other parties it cannot see, nor that two readers talk: risk
sentences say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import permutations
from pathlib import Path

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract.disclosures import REFUSED, SENTENCES, Kind
from clustering_protocols.numerics.data_source import (
    DataSource,
    keep_columns,
    original_of,
)
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.terms import session_risks
from party_sdk.disclosures.history_files import ShownFile, ShownTable, Use, share_one
from party_sdk.disclosures.row_marks import RowMarks, marks_of, row_key
from party_sdk.home.files import wait_for_lock

_DECIDE = f"Decide --choice {session_risks.SHOWN_TOGETHER}=true if it may."
_THIRD = 2
"""So many uses that publish of exactly the same rows, and the next one is asked about."""


class ShownTables:
    """Marks of the rows that one home has shown, and what of them to whom."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = ShownFile(home)
        self._marked: tuple[DataSource, RowMarks] | None = None

    def marks(self, data: DataSource, described: Collection[str] = ()) -> RowMarks:
        """Return the marks of a table's rows, in their order; made once of a table.

        They are of the cells before any mapping: another unit makes no other rows.

        described: names of columns that are not clustered.
        """
        if self._marked is None or self._marked[0] is not data:
            clustered = _clustered_part(data, described)
            own = original_of(data)
            self._marked = data, marks_of(row_key(self._home), own, clustered)
        return self._marked[1]

    def key(self, purpose: str) -> bytes:
        """Return 32 secret bytes of the home for one purpose."""
        return derive_key(row_key(self._home), purpose)

    def check(
        self,
        use: Use,
        data: DataSource,
        described: Collection[str] = (),
        *,
        allowed: bool,
    ) -> None:
        """Refuse a use of rows that does not go with what was shown of them before.

        use: what the session at hand will show.
        data: what arrives of the party's table.
        described: names of its columns that are not clustered.
        allowed: whether the operator has agreed to what is only asked about.

        Raises GuardRefused.
        """
        tables = self._file.read()
        if use.shows and tables:
            _check(use, tables, self.marks(data, described), allowed=allowed)

    def keep(
        self,
        use: Use,
        data: DataSource,
        described: Collection[str] = (),
        *,
        allowed: bool,
    ) -> None:
        """Keep what a session shows of rows, before any of it leaves.

        It is checked once more, as sessions that were joined at the same time may have
        shown something since; see :meth:`check`.
        """
        if not use.shows:
            return
        marks = self.marks(data, described)
        with wait_for_lock(self._file.path.with_name("shown.lock")):
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


def _clustered_part(data: DataSource, described: Collection[str]) -> DataSource | None:
    """Return the clustered columns, as the table has them; None where all are."""
    if not described:
        return None
    kept = [i for i, name in enumerate(data.columns) if name not in described]
    return keep_columns(original_of(data), np.array(kept, dtype=np.int64))


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
                "Means of nearly the same rows were published before: anyone who takes "
                "them off the new ones reads the few that differ. At least "
                f"{use.smallest} rows have to be new or gone, or none."
            )


def _questions(use: Use, known: list[ShownTable], marks: RowMarks) -> Iterator[str]:
    """Yield what only the operator can decide, a sentence each."""
    for table in known:
        for before in table.besides(use):
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
    for first, then in (order for pair in REFUSED for order in permutations(pair)):
        if share_one(before.readers_of(first), now.readers_of(then)):
            yield (
                f"Of these rows, an earlier session showed {SENTENCES[first]}. Its "
                f"analyst, coordinator or a party now gets {SENTENCES[then]}: from both "
                "it can compute the rows."
            )
    geometry = (use.readers_of(Kind.GEOMETRY) for use in (before, now))
    if before.way != now.way and share_one(*geometry):
        yield (
            "The same analyst or coordinator got these rows up to a motion by another "
            "protocol, or of other columns: together they show more of each row."
        )
