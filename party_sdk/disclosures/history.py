"""What a home showed of its rows, so that sessions are safe together.

Who reads two sums over nearly the same rows reads the few that differ; who reads means
and has rows up to a motion turns these back into rows; who may ask again and again about
the same people learns more each time. So a home keeps one history: for each use of rows
their marks, what was shown of them and to whom. It refuses, or asks, before a session
that does not go with it. What changes at other parties it cannot see, nor that two
readers talk: risk sentences say so.

Of tables of more than 32,768 rows only the number of sums is kept: each then counts as a
row that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import DegreeSums, RowHistory
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Assignment
from clustering_protocols.contract.row_history import MOST_ROWS, most_following
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Terms
from party_sdk.disclosures.known_rows import (
    CellWords,
    KnownRows,
    Store,
    cell_words,
    id_marks,
    mix,
    places_of,
    row_key,
)
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy

_USES, _ROWS = "uses", "rows"
_BUCKETS: Final = 256
"""Sums of a column's cells by which two columns are compared."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)

_FEWEST_COMMON: Final = 10
"""Tables of fewer rows in common are of other people."""

_MOST_PUBLISHED: Final = 2
"""So many uses publish of one row, and the next one is asked about."""

_MOST_DEGREES: Final = 0.5
_ROUNDING: Final = 1 + 1e-9  # a tenth, ten times, is one
_DECIDE: Final = f"Decide --choice {session_risks.SHOWN_TOGETHER}=true if it may."


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that take part.

    marks: uint64 (n,); in their order.
    columns: uint64 (F, 256); sums of each column's cells, by the marks of their rows.
    """

    marks: WordArray
    columns: WordArray

    @classmethod
    def of(cls, marks: WordArray, cells: CellWords) -> Rows:
        """Return rows by their marks (n,) and the words of their cells (F, n)."""
        buckets = marks.astype(np.uint8)  # sorted by their one byte
        order = np.argsort(buckets, kind="stable")
        there, begins = np.unique(buckets[order], return_index=True)
        columns = np.zeros((len(cells), _BUCKETS), np.uint64)
        for column, words in zip(columns, cells, strict=True):
            found = mix(marks ^ (words.astype(np.uint64) * _ODD))
            found[words == 0] = 0
            column[there] = np.add.reduceat(found[order], begins)
        return cls(marks, columns)

    @cached_property
    def name(self) -> str:
        """Return what names them among all rows."""
        digest = blake2b(self.marks.data, digest_size=16)
        digest.update(self.columns.data)
        return digest.hexdigest()


class Overlap(NamedTuple):
    """What two sets of rows have in common.

    differing: fewest rows by which sums over both differ, of rows new or gone and of
        values of a column; 0 where they differ in none.
    """

    common: int
    differing: int

    @classmethod
    def of(cls, before: Rows, now: Rows) -> Overlap:
        """Return what rows have in common with earlier ones."""
        if np.array_equal(before.marks, now.marks):
            new = gone = now.marks[:0]
        else:
            new = now.marks[places_of(now.marks, before.marks) < 0]
            gone = before.marks[places_of(before.marks, now.marks) < 0]
        touched = len(np.unique(np.concatenate([new, gone]) % np.uint64(_BUCKETS)))
        changes = [n for n in _changes(before, now) if n < touched or not touched]
        differing = [max(len(new), len(gone)), *changes]
        common = len(now.marks) - len(new)
        return cls(common, min((n for n in differing if n), default=0))


def _changes(before: Rows, now: Rows) -> Iterator[int]:
    """Yield in how many rows columns without an equal one differ from those like them."""
    equal = {column.tobytes() for column in before.columns}
    also = {column.tobytes() for column in now.columns}
    left = [column for column in before.columns if column.tobytes() not in also]
    for column in now.columns:
        if left and column.tobytes() not in equal:
            yield int((np.array(left) != column).sum(axis=1).min())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One use of rows, as the history keeps it.

    rows: their name.
    summed: in which sums they stood, in their order; None for none.
    """

    use: Use
    rows: str
    summed: RowHistory | None = field(default=None, repr=False)

    def encode(self) -> bytes:
        """Return the entry as bytes."""
        said = {"use": self.use.model_dump_json(), "rows": self.rows}
        if self.summed is None:
            return codec.encode(said, {})
        return codec.encode({**said, "summed": self.summed.values}, self.summed.arrays)

    @classmethod
    def decode(cls, content: bytes) -> Entry:
        """Return the entry of bytes."""
        header, arrays = codec.decode(content)
        summed = None
        if "summed" in header:
            summed = RowHistory.model_validate({**header["summed"], **arrays})
        use = Use.model_validate_json(header["use"])
        return cls(use=use, rows=header["rows"], summed=summed)


class History:
    """All uses of the rows of one home."""

    def __init__(self, home: Path) -> None:
        self._home, self._store = home, Store(home)
        self._known = KnownRows(self._store)
        self._marked: tuple[DataSource, WordArray, CellWords] | None = None
        self._entries: dict[str, tuple[int, Entry]] = {}
        self._rows: dict[str, Rows] = {}
        self._overlaps: dict[tuple[str, str], Overlap] = {}

    def key(self, purpose: str) -> bytes:
        """Return 32 secret bytes of the home for one purpose."""
        return derive_key(row_key(self._home), purpose)

    def rows_of(self, data: DataSource, chosen: IntArray | None = None) -> Rows:
        """Return the rows of a table that take part, known again or marked anew.

        chosen: int64 (k,); numbers of those that take part; all by default.
        """
        if self._marked is None or self._marked[0] is not data:
            key = row_key(self._home)
            ids, (cells, names) = id_marks(key, data.ids), cell_words(key, data)
            self._marked = data, self._known.identify(ids, cells, names), cells
        _, marks, cells = self._marked
        if chosen is not None:
            marks, cells = marks[chosen], cells[:, chosen]
        return Rows.of(marks, cells)

    def check(
        self,
        use: Use,
        rows: Rows,
        policy: Policy,
        summed: RowHistory | None = None,
        *,
        allowed: bool = False,
    ) -> None:
        """Refuse a use of rows that does not go with earlier ones.

        summed: in which sums the rows then stand, in their order.
        allowed: whether the operator has agreed to what is only asked about.

        Raises GuardRefused.
        """
        _Check(self, use, rows, policy, allowed=allowed).run(summed)

    def record(
        self,
        use: Use,
        rows: Rows,
        policy: Policy,
        summed: RowHistory | None = None,
        *,
        allowed: bool = False,
    ) -> None:
        """Keep a use of rows before anything of it leaves; checked once more.

        Sessions that were joined at the same time may have shown something since. A use
        that is kept already is replaced.
        """
        with self._store.alone():
            self.check(use, rows, policy, summed, allowed=allowed)
            name = rows.name
            if name not in self._store.numbers(_ROWS):
                arrays = {"marks": rows.marks, "columns": rows.columns}
                self._store.write(_ROWS, name, codec.encode({}, arrays))
            entry = Entry(use=use, rows=name, summed=summed)
            self._store.write(_USES, use.name, entry.encode())

    def besides(self, use: Use) -> list[Entry]:
        """Return all other entries, oldest first; each is read once."""
        numbers = self._store.numbers(_USES)
        numbers.pop(use.name, None)
        for name, number in numbers.items():
            if self._entries.get(name, (0,))[0] != number:
                entry = Entry.decode(self._store.read(_USES, name))
                self._entries[name] = number, entry
        return [self._entries[name][1] for name in numbers]

    def rows(self, name: str) -> Rows:
        """Return rows by their name; read once."""
        if name not in self._rows:
            _, arrays = codec.decode(self._store.read(_ROWS, name))
            self._rows[name] = Rows(**arrays)
        return self._rows[name]

    def overlap(self, before: str, now: Rows, name: str) -> Overlap:
        """Return what rows of a name have in common with earlier ones."""
        pair = before, name
        if pair not in self._overlaps:
            self._overlaps[pair] = Overlap.of(self.rows(before), now)
        return self._overlaps[pair]


class _Check:
    """The checks of one use of rows, beside all others that share some of these."""

    def __init__(
        self, history: History, use: Use, rows: Rows, policy: Policy, *, allowed: bool
    ) -> None:
        self._history, self._use, self._rows = history, use, rows
        self._policy, self._allowed = policy, allowed
        name = rows.name
        found = [
            (entry, history.overlap(entry.rows, rows, name))
            for entry in history.besides(use)
        ]
        self._near = [(entry, overlap) for entry, overlap in found if overlap.common]

    def run(self, summed: RowHistory | None) -> None:
        """Raise GuardRefused for the first check that fails."""
        if self._use.intersects:
            self._check_intersections()
            return
        self._check_epsilon()
        self._check_degrees()
        if self._use.sums:
            self._check_differences()
        if summed is not None and summed.n_sums:
            self._check_following(summed)
        for question in () if self._allowed else self._questions():
            raise GuardRefused(f"{question} {_DECIDE}")

    def _most(self, amount: Callable[[Use], float]) -> float:
        """Return the largest amount that other sessions come to, of any row.

        What slots of one session show of a row counts once.
        """
        marks, holds = self._rows.marks, dict[str, NDArray[np.bool_]]()
        costs: dict[str, FloatArray] = {}
        for entry, _ in self._near:
            cost, session = amount(entry.use), entry.use.session
            if not cost or session == self._use.session:
                continue
            if entry.rows not in holds:
                before = self._history.rows(entry.rows).marks
                same = np.array_equal(marks, before)
                holds[entry.rows] = same | (places_of(marks, before) >= 0)
            spent = np.where(holds[entry.rows], cost, 0.0)
            costs[session] = np.maximum(costs.get(session, spent), spent)
        return float(sum(costs.values(), np.zeros(len(marks))).max(initial=0.0))

    def _check_intersections(self) -> None:
        if self._use.counts and self._most(lambda use: use.counts):
            raise GuardRefused(
                "Some of these rows were counted with those of others before. A second "
                "count, of a table with one person more, would show whether others have "
                "that person: link the rows instead, or count other ones."
            )
        own, limit = self._use.coordinator, self._policy.intersections_limit
        done = self._most(lambda use: use.intersects and use.coordinator == own)
        if done >= limit:
            raise GuardRefused(
                f"This coordinator had ids of these rows intersected {done:.0f} times; "
                f"'intersections_limit' is {limit}. Each time others learn which ids are "
                f"common. To allow one more: --guard intersections_limit={done + 1:.0f}."
            )

    def _check_epsilon(self) -> None:
        cost, total = self._use.epsilon, self._policy.epsilon_total
        if total is None or not cost:
            return
        spent = self._most(lambda use: use.epsilon)
        if spent + cost > total * _ROUNDING:
            raise GuardRefused(
                f"This session costs each person ε = {cost:.4g}; earlier ones have cost "
                f"some of them {spent:.4g}. 'epsilon_total' is {total:.4g}."
            )

    def _check_degrees(self) -> None:
        told = self._use.degrees
        before = self._most(lambda use: use.degrees) if told else 0.0
        if before and before + told > _MOST_DEGREES * _ROUNDING:
            raise GuardRefused(
                "Sums of degrees of fuzzy c-means, or of a mixture, over these rows left "
                "before: with those of this session others would have "
                f"{before + told:.2g} equations for each unknown number, and "
                f"{_MOST_DEGREES:g} may be. Take fewer rounds or clusters, hard c-means, or "
                "other rows."
            )

    def _check_differences(self) -> None:
        """Refuse sums over rows of which few differ from those of an earlier session.

        What slots of one session add up together is for its terms to say.
        """
        own = self._use.session
        summed = [
            (entry, overlap)
            for entry, overlap in self._near
            if entry.use.sums and entry.use.session != own
        ]
        for entry, overlap in summed:
            least = self._fewest(entry.use)
            if 0 < overlap.differing < least:
                raise GuardRefused(
                    "Sums over nearly the same rows were told before: anyone who takes "
                    "them off the new ones reads the few that differ. At least "
                    f"{least} rows have to be new, gone or changed, or none: collect so "
                    "many changes, or take part with the table as it was."
                )
        if self._singles_out({entry.rows for entry, _ in summed}):
            raise GuardRefused(
                "Sums of these rows and those of several earlier sessions, added and taken "
                "off each other, are a single row. Take part with the rows of an earlier "
                "session, or with other ones."
            )

    def _fewest(self, before: Use) -> int:
        own = self._policy.minimum_rows
        return max(self._use.smallest, before.smallest, own)

    def _singles_out(self, names: set[str]) -> bool:
        """Return whether a row follows from sums of all rows of each session."""
        marks, name = self._rows.marks, self._rows.name
        others = [self._history.rows(each).marks for each in sorted(names - {name})]
        if len(others) < 2 or max(map(len, (marks, *others))) > MOST_ROWS:
            return False
        totals = [(each, total_of(len(each))) for each in others]
        _, history = merge(marks, total_of(len(marks)), totals)
        return history.n_following() > 0

    def _check_following(self, summed: RowHistory) -> None:
        others = [
            (self._history.rows(entry.rows).marks, entry.summed)
            for entry, _ in self._near
            if entry.summed is not None
        ]
        marks, history = merge(self._rows.marks, summed, others)
        share = self._policy.sums_limit
        most = most_following(share, len(marks))
        following = history.n_following(most)
        if following > most:
            raise GuardRefused(
                f"{following} of your {len(marks)} rows could be computed from these sums "
                f"and those of earlier sessions over the same rows; 'sums_limit' is "
                f"{share:g}, {most} rows. Take part with other rows."
            )

    def _questions(self) -> Iterator[str]:
        """Yield what only the operator can decide, a sentence each."""
        for entry, overlap in self._near:
            if overlap.common >= _FEWEST_COMMON:
                yield from self._use.questions_after(entry.use)
        if not self._use.published:
            return
        published = self._most(lambda use: use.published)
        if published >= _MOST_PUBLISHED:
            yield (
                f"Means of these rows were published {published:.0f} times before: each "
                "time narrows down single rows."
            )


Summed = tuple[WordArray, RowHistory]
"""Marks of rows, and in which sums these stood."""


def degrees_in(memory: Memory, terms: Terms) -> float:
    """Return the equations that sums of degrees have told, of all runs."""
    found = (each.get(DegreeSums) for each in _runs(memory, terms))
    return sum(each.equations for each in found if each is not None)


def history_of(memory: Memory, terms: Terms, slot: str, n_rows: int) -> RowHistory:
    """Return in which sums the rows that take part stand, by a party's memory.

    A protocol that adds up by clusters keeps a history of every run. Of others the sums
    of pooled moments and of fillings are of all rows, and those of a profile of the
    final labels.
    """
    kept = (each.get(RowHistory) for each in _runs(memory, terms))
    found = [each for each in kept if each is not None]
    if found:
        return max(found, key=lambda each: each.n_sums)
    history = RowHistory.of_none(n_rows)
    for labels in _partitions(memory, terms, slot, n_rows):
        history = history.after(labels)
    return history


def _runs(memory: Memory, terms: Terms) -> list[Memory]:
    n_runs = 1 if terms.evaluation is None else len(terms.evaluation.n_clusters)
    return [memory.scope_to_run(run) for run in range(n_runs)]


def _partitions(
    memory: Memory, terms: Terms, slot: str, n_rows: int
) -> Iterator[IntArray]:
    """Yield the clusters of rows, for each time that they are added up."""
    if memory.get(RowsSummed) is not None:
        yield np.zeros(n_rows, dtype=np.int64)
    labelled = memory.get(Assignment)
    adds_up = terms.layout.adds_up(terms.layout.slot(slot).column)
    if labelled is not None and terms.release is not None and adds_up:
        yield labelled.labels


def total_of(n_rows: int) -> RowHistory:
    """Return the history of rows of which the sum of all was told."""
    return RowHistory.of_none(n_rows).after(np.zeros(n_rows, dtype=np.int64))


def merge(
    marks: WordArray, history: RowHistory, others: Sequence[Summed]
) -> tuple[WordArray, RowHistory]:
    """Return rows, and their history, with the sums of all others that hang together.

    The first rows are those of this session; then come rows that only others held.
    """
    left = list(others)
    while near := next((each for each in left if np.isin(each[0], marks).any()), None):
        left = [other for other in left if other is not near]
        theirs, sums = near
        new = theirs[~np.isin(theirs, marks)]
        added = np.full(len(new), -1, dtype=np.int64)
        history = history.reindex(np.concatenate([np.arange(len(marks)), added]))
        marks = np.concatenate([marks, new])
        history = history.merge(sums.reindex(places_of(marks, theirs)))
    return marks, history
