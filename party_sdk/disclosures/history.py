"""The history of a home's disclosures, which keeps its sessions safe together.

The difference of two sums over nearly the same rows shows the few rows that differ.
Means reveal rows that a reader knew only up to a rigid motion. Repeated questions about
the same people show more each time. Therefore a home stores one history of all uses of
its rows: the marks of the rows, what was disclosed, and to whom. A party refuses a
session that conflicts with the history, or asks its operator. The history does not know
of changes at other parties, or of readers who cooperate; a session's risks state this.

For tables of more than 32,768 rows the history only counts the sums of clusters, and
assumes that each sum determines one row.
"""

from __future__ import annotations

import secrets
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
from clustering_protocols.contract.row_history import most_derivable_rows
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
    hash_cells,
    id_marks,
    make_distinct,
    marks_not_in,
    mix,
    positions_of,
    replace_marks,
    row_key,
)
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy

_USES, _ROWS = "uses", "rows"
_BUCKETS: Final = 256
"""The number of sums of hashed cells that are stored per column, for comparisons."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)

_FEWEST_COMMON: Final = 10
"""Tables with fewer common rows are assumed to describe different people."""

_MOST_PUBLISHED: Final = 2
"""After this many published means of a row, the operator is asked about the next."""

_MOST_DEGREES: Final = 0.5
_ROUNDING: Final = 1 + 1e-9  # ten times 0.1 must not exceed 1
_REMEDY: Final = f"To allow it: --choice {session_risks.SHOWN_TOGETHER}=true."


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table that take part in a session.

    marks: uint64 (n,), in the order of the rows.
    columns: uint64 (F, 256); the sums of a column's hashed cells over the rows whose
        marks end with the same byte.
    cells: uint32 (F, n), hashes of the cells; None for rows of earlier sessions, of
        which only the sums are stored.
    """

    marks: WordArray
    columns: WordArray
    cells: CellWords | None = field(default=None, repr=False)

    @classmethod
    def from_marks(cls, marks: WordArray, cells: CellWords) -> Rows:
        """Return rows with these marks (n,) and hashes of cells (F, n)."""
        buckets = marks.astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        buckets_present, begins = np.unique(buckets[order], return_index=True)
        columns = np.zeros((len(cells), _BUCKETS), np.uint64)
        for column, words in zip(columns, cells, strict=True):
            hashes = mix(marks ^ (words.astype(np.uint64) * _ODD))
            hashes[words == 0] = 0
            column[buckets_present] = np.add.reduceat(hashes[order], begins)
        return cls(marks, columns, cells)

    @cached_property
    def name(self) -> str:
        """Return the digest (hex) under which the rows are stored."""
        digest = blake2b(self.marks.data, digest_size=16)
        digest.update(self.columns.data)
        return digest.hexdigest()


class Overlap(NamedTuple):
    """The overlap of two sets of rows.

    common: the number of rows in both sets.
    differing: the fewest rows that the difference of sums over the two sets can reveal,
        because the rows were added, removed, or changed in one column; 0 for none.
    """

    common: int
    differing: int

    @classmethod
    def compare(cls, before: Rows, now: Rows) -> Overlap:
        """Return the overlap of the rows ``now`` with the rows of an earlier session."""
        if np.array_equal(before.marks, now.marks):
            added = removed = now.marks[:0]
        else:
            added = marks_not_in(now.marks, before.marks)
            removed = marks_not_in(before.marks, now.marks)
        touched = len(np.unique(np.concatenate([added, removed]) % np.uint64(_BUCKETS)))
        changes = [n for n in _count_changes(before, now) if n < touched or not touched]
        differing = [max(len(added), len(removed)), *changes]
        common = len(now.marks) - len(added)
        return cls(common, min((n for n in differing if n), default=0))


def _count_changes(before: Rows, now: Rows) -> Iterator[int]:
    """Yield, for each changed column, a lower bound for the number of its changed rows."""
    equal = {column.tobytes() for column in before.columns}
    now_columns = {column.tobytes() for column in now.columns}
    unmatched = [
        column for column in before.columns if column.tobytes() not in now_columns
    ]
    for column in now.columns:
        if unmatched and column.tobytes() not in equal:
            yield int((np.array(unmatched) != column).sum(axis=1).min())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One use of rows in the history.

    rows: the name of the rows.
    summed: the disclosed sums that contain each row, in the order of the rows; None if
        no sums were disclosed.
    """

    use: Use
    rows: str
    summed: RowHistory | None = field(default=None, repr=False)

    def encode(self) -> bytes:
        """Return the entry as bytes."""
        header = {"use": self.use.model_dump_json(), "rows": self.rows}
        if self.summed is None:
            return codec.encode(header, {})
        return codec.encode(
            {**header, "summed": self.summed.values}, self.summed.arrays
        )

    @classmethod
    def decode(cls, content: bytes) -> Entry:
        """Return the entry that :meth:`encode` wrote."""
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
        self._overlaps: dict[tuple[str, str, int], Overlap] = {}
        self._revealing: dict[tuple[frozenset[str], str, int, int], bool] = {}

    def key(self, purpose: str) -> bytes:
        """Derive a 32-byte key for one purpose from the secret key of the home."""
        return derive_key(row_key(self._home), purpose)

    def rows_of(self, data: DataSource, selection: IntArray | None = None) -> Rows:
        """Return the rows of a table that take part; known rows have their earlier marks.

        selection: int64 (k,), indices of the rows that take part; all by default.
        """
        if self._marked is None or self._marked[0] is not data:
            key = row_key(self._home)
            ids, (cells, names) = id_marks(key, data.ids), hash_cells(key, data)
            self._marked = data, self._known.identify(ids, cells, names), cells
        _, marks, cells = self._marked
        if selection is not None:
            marks, cells = marks[selection], cells[:, selection]
        return Rows.from_marks(marks, cells)

    def check(
        self,
        use: Use,
        rows: Rows,
        policy: Policy,
        summed: RowHistory | None = None,
        *,
        is_agreed: bool = False,
    ) -> None:
        """Refuse a use of rows if it discloses too much together with earlier uses.

        summed: this session's sums that contain each row, in the order of the rows.
        is_agreed: whether the operator allows the conflicts about which it is asked.

        Raises GuardRefused.
        """
        self._known.load_replaced_marks()
        _Check(self, use, rows, policy, is_agreed=is_agreed).run(summed)

    def record(
        self,
        use: Use,
        rows: Rows,
        policy: Policy,
        summed: RowHistory | None = None,
        *,
        is_agreed: bool = False,
    ) -> None:
        """Check a use of rows again, and record it before anything is sent.

        Other sessions may have disclosed something since the first check. A recorded use
        of the same name is replaced.
        """
        with self._store.locked():
            self.check(use, rows, policy, summed, is_agreed=is_agreed)
            name = rows.name
            if name not in self._store.numbers(_ROWS):
                arrays = {"marks": rows.marks, "columns": rows.columns}
                self._store.write(_ROWS, name, codec.encode({}, arrays))
            entry = Entry(use=use, rows=name, summed=summed)
            self._store.write(_USES, use.name, entry.encode())

    def other_entries(self, use: Use) -> list[Entry]:
        """Return the entries of all other uses, oldest first."""
        numbers = self._store.numbers(_USES)
        numbers.pop(use.name, None)
        for name, number in numbers.items():
            if self._entries.get(name, (0,))[0] != number:
                entry = Entry.decode(self._store.read(_USES, name))
                self._entries[name] = number, entry
        return [self._entries[name][1] for name in numbers]

    def marks(self, name: str) -> WordArray:
        """Return the current marks of the rows that are stored under a name."""
        return replace_marks(self._stored_rows(name).marks, *self._known.same)

    def _stored_rows(self, name: str) -> Rows:
        if name not in self._rows:
            _, arrays = codec.decode(self._store.read(_ROWS, name))
            self._rows[name] = Rows(**arrays)
        return self._rows[name]

    def overlap(self, before: str, now: Rows, name: str) -> Overlap:
        """Return the overlap of the rows ``now`` with those stored under ``before``.

        name: the name of the rows ``now``.
        """
        query = before, name, len(self._known.same[0])
        if query not in self._overlaps:
            earlier, marks = self._stored_rows(before), self.marks(before)
            if now.cells is not None and not np.array_equal(marks, earlier.marks):
                # earlier columns are sums of hashes with the marks of that time
                former = replace_marks(now.marks, marks, earlier.marks)
                now = Rows.from_marks(former, now.cells)
            self._overlaps[query] = Overlap.compare(earlier, now)
        return self._overlaps[query]

    def reveals_few_rows(self, names: set[str], now: Rows, minimum: int) -> bool:
        """Return whether a sum over few rows follows from several totals of rows.

        names: the names of earlier rows whose totals were disclosed.
        now: the rows whose total would be disclosed next.
        minimum: the fewest rows over which a sum may follow.
        """
        query = frozenset(names), now.name, minimum, len(self._known.same[0])
        if query not in self._revealing:
            earlier = [self.marks(name) for name in sorted(names)]
            self._revealing[query] = reveals_few_rows([*earlier, now.marks], minimum)
        return self._revealing[query]


class _Check:
    """The checks of one use of rows against the earlier uses of the same rows."""

    def __init__(
        self, history: History, use: Use, rows: Rows, policy: Policy, *, is_agreed: bool
    ) -> None:
        self._history, self._use, self._rows = history, use, rows
        self._policy, self._is_agreed = policy, is_agreed
        name = rows.name
        self._others = history.other_entries(use)
        overlaps = [
            (entry, history.overlap(entry.rows, rows, name)) for entry in self._others
        ]
        self._near = [(entry, overlap) for entry, overlap in overlaps if overlap.common]

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
            self._check_computable_rows(summed)
        for question in () if self._is_agreed else self._questions():
            raise GuardRefused(f"{question} {_REMEDY}")

    def _largest_total_per_row(self, amount: Callable[[Use], float]) -> float:
        """Return the largest total of amounts that other sessions have spent on one row.

        amount: returns the amount that one use adds to each of its rows.

        If several slots of a session used a row, the largest of their amounts counts.
        """
        marks, is_used = self._rows.marks, dict[str, NDArray[np.bool_]]()
        costs: dict[str, FloatArray] = {}
        for entry, _ in self._near:
            cost, session = amount(entry.use), entry.use.session
            if not cost or session == self._use.session:
                continue
            if entry.rows not in is_used:
                before = self._history.marks(entry.rows)
                is_same = np.array_equal(marks, before)
                is_used[entry.rows] = is_same | (positions_of(marks, before) >= 0)
            spent = np.where(is_used[entry.rows], cost, 0.0)
            costs[session] = np.maximum(costs.get(session, spent), spent)
        return float(sum(costs.values(), np.zeros(len(marks))).max(initial=0.0))

    def _check_intersections(self) -> None:
        if self._use.counts and self._largest_total_per_row(lambda use: use.counts):
            raise GuardRefused(
                "Some of these rows were counted with other parties' rows before. A "
                "second count, of a table with one more person, would show whether "
                "others have that person: link the rows instead, or count other ones."
            )
        own_session, near = self._use.session, {entry.rows for entry, _ in self._near}
        if not self._is_agreed and any(
            self._use.counts and entry.use.counts and entry.rows not in near
            for entry in self._others
            if entry.use.session != own_session
        ):
            raise GuardRefused(
                "A table was counted with other parties' tables before, and none of "
                "its ids or values is in this one. If it has other people, allow the "
                "count; if it has the same, a second count, with one more person, "
                f"would show whether others have that person. {_REMEDY}"
            )
        own, limit = self._use.coordinator, self._policy.intersections_limit
        n_sessions = self._largest_total_per_row(
            lambda use: use.intersects and use.coordinator == own
        )
        if n_sessions >= limit:
            raise GuardRefused(
                f"This coordinator has had these rows linked {n_sessions:.0f} times; "
                f"'intersections_limit' is {limit}. Each time others learn which rows are "
                f"common. To allow one more: --guard intersections_limit={n_sessions + 1:.0f}."
            )

    def _check_epsilon(self) -> None:
        cost, total = self._use.epsilon, self._policy.epsilon_total
        if total is None or not cost:
            return
        spent = self._largest_total_per_row(lambda use: use.epsilon)
        if spent + cost > total * _ROUNDING:
            raise GuardRefused(
                f"This session costs each person ε = {cost:.4g}; earlier ones have cost "
                f"some of them {spent:.4g}. 'epsilon_total' is {total:.4g}."
            )

    def _check_degrees(self) -> None:
        degrees = self._use.degrees
        before = (
            self._largest_total_per_row(lambda use: use.degrees) if degrees else 0.0
        )
        if before and before + degrees > _MOST_DEGREES * _ROUNDING:
            raise GuardRefused(
                "An earlier session sent sums of memberships over these rows: with the "
                f"sums of this one, others would have {before + degrees:.2g} equations "
                f"for each unknown number, and at most {_MOST_DEGREES:g} are allowed. "
                "Use fewer rounds or clusters, hard c-means, or other rows."
            )

    def _check_differences(self) -> None:
        """Refuse sums over rows of which only few differ from an earlier session's rows.

        Other slots of this session are not compared, because the terms decide which
        sums they pool.
        """
        own, smallest = self._use.session, self._use.smallest
        for entry, overlap in self._near:
            if not entry.use.sums or entry.use.session == own:
                continue
            minimum = max(smallest, entry.use.smallest, self._policy.minimum_rows)
            if 0 < overlap.differing < minimum:
                raise GuardRefused(
                    "Sums over nearly the same rows were sent before: anyone who subtracts "
                    "both can read the few rows that differ. At least "
                    f"{minimum} rows have to be new, removed or changed, or none: wait for "
                    "more changes, or take part with the earlier table."
                )
        # sessions without common rows count too, since a third may connect them
        names = {e.rows for e in self._others if e.use.sums and e.use.session != own}
        minimum = max(smallest, self._policy.minimum_rows)
        if self._history.reveals_few_rows(names, self._rows, minimum):
            raise GuardRefused(
                "Totals of these rows and of several earlier sessions can be added and "
                f"subtracted so that a sum over fewer than {minimum} rows remains. Take "
                "part with the rows of an earlier session, or with other ones."
            )

    def _check_computable_rows(self, summed: RowHistory) -> None:
        """Refuse sums if too many rows of one session follow from those of all sessions.

        Each session that common rows connect with this one has its own limit, because a
        large session must not raise the limit of a small one. An earlier session above
        its limit is no obstacle if this one makes no more of its rows derivable. If the
        sums of a large table are only counted, only the limit of this session applies,
        because the many sums of a large session would exceed the limit of a small one.
        """
        earlier = [
            (self._history.marks(entry.rows), entry.summed)
            for entry in self._others
            if entry.summed is not None
        ]
        sessions = [(self._rows.marks, summed), *earlier]
        share = self._policy.sums_limit
        n_sums = sum(sums.n_sums for _, sums in sessions)
        if n_sums <= most_derivable_rows(share, min(len(m) for m, _ in sessions)):
            return  # no more rows follow than there are sums
        rows, merged = merge(sessions)
        rows = rows if merged.whole else rows[:1]
        limits = [most_derivable_rows(share, len(numbers)) for numbers in rows]
        counts = count_derivable_rows(merged, rows, limits)
        excess = [i for i in range(len(rows)) if counts[i] > limits[i]]
        if excess and excess[0] > 0:
            others = merged.labels[len(summed.labels) :]
            before = merged.model_copy(update={"labels": others}).find_derivable_rows()
            excess = [i for i in excess if counts[i] > before[rows[i]].sum()]
        for i in excess[:1]:
            whose = f"your {len(rows[i])} rows"
            if i > 0:
                whose = f"the {len(rows[i])} rows of an earlier session"
            raise GuardRefused(
                f"{counts[i]} of {whose} could be computed from these sums and those of "
                f"earlier sessions over the same rows; 'sums_limit' is {share:g}, "
                f"{limits[i]} rows. Take part with other rows."
            )

    def _questions(self) -> Iterator[str]:
        """Yield a sentence for each conflict that the operator may allow."""
        for entry, overlap in self._near:
            if overlap.common >= _FEWEST_COMMON:
                yield from self._use.questions_after(entry.use)
        if not self._use.published:
            return
        n_published = self._largest_total_per_row(lambda use: use.published)
        if n_published >= _MOST_PUBLISHED:
            yield (
                f"Means of these rows were published {n_published:.0f} times before: each "
                "time narrows down single rows."
            )


Summed = tuple[WordArray, RowHistory]
"""Marks of rows, and the sums that contained each row."""


def degrees_in(memory: Memory, terms: Terms) -> float:
    """Return the number of equations per unknown value in all runs' sums of memberships."""
    sums = (item.get(DegreeSums) for item in _run_memories(memory, terms))
    return sum(item.equations for item in sums if item is not None)


def row_history_of(memory: Memory, terms: Terms, slot: str, n_rows: int) -> RowHistory:
    """Return which disclosed sums contain each row, according to a party's memory.

    A protocol that sums by cluster keeps a history of every run. In other protocols the
    sums for moments and imputations are over all rows, and the sums for a profile are
    over the final clusters.
    """
    histories = (item.get(RowHistory) for item in _run_memories(memory, terms))
    present = [item for item in histories if item is not None]
    if present:
        return max(present, key=lambda item: item.n_sums)
    history = RowHistory.empty(n_rows)
    if memory.get(RowsSummed) is not None:
        history = history.after_partition(np.zeros(n_rows, dtype=np.int64))
    labelled = memory.get(Assignment)
    adds_up = terms.layout.can_pool(terms.layout.slot(slot).column)
    if labelled is not None and terms.release is not None and adds_up:
        history = history.after_partition(labelled.labels)
    return history


def _run_memories(memory: Memory, terms: Terms) -> list[Memory]:
    n_runs = 1 if terms.evaluation is None else len(terms.evaluation.n_clusters)
    return [memory.scope_to_run(run) for run in range(n_runs)]


def merge(sessions: Sequence[Summed]) -> tuple[list[IntArray], RowHistory]:
    """Merge the sums of the first session and of all that common rows connect with it.

    Rows of one session with the same mark, such as visits of one person, stay different
    rows; those of two sessions are matched in their order.

    Returns the indices of each of these sessions' rows in the merged history, those of
    the first session first, and the merged history.
    """
    marks, rows = _number_rows([make_distinct(marks) for marks, _ in sessions])
    is_near, is_connected = _find_connected(rows, len(marks))
    place = np.cumsum(is_connected) - 1
    near = np.flatnonzero(is_near).tolist()
    rows, histories = [place[rows[i]] for i in near], [sessions[i][1] for i in near]
    return rows, _merge_histories(histories, rows, int(is_connected.sum()))


def _find_connected(
    rows: Sequence[IntArray], n_rows: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the sessions and rows that common rows connect with the first session."""
    # late imports: most sessions have too few sums for this
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    session = np.repeat(np.arange(len(rows)), [len(numbers) for numbers in rows])
    edges = session, len(rows) + np.concatenate(rows)
    size = len(rows) + n_rows
    graph = coo_array((np.ones(len(session)), edges), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    is_near, is_connected = np.split(component == component[0], [len(rows)])
    return is_near, is_connected


def _merge_histories(
    histories: Sequence[RowHistory], rows: Sequence[IntArray], n_rows: int
) -> RowHistory:
    """Return one history of ``n_rows`` rows, given the rows of each history."""
    n_totals = sum(
        sums.all_rows and len(numbers) == n_rows
        for numbers, sums in zip(rows, histories, strict=True)
    )
    # sums of several sessions over all rows are one sum
    n_sums = sum(sums.n_sums for sums in histories) - max(n_totals - 1, 0)
    of_row: IntArray = np.empty(0, np.int64)
    labels = np.empty((0, 0), np.int32)
    if whole := all(sums.whole for sums in histories):
        classes = np.full((len(rows), n_rows), -1)  # -1: in no sum of a session
        signatures = np.zeros(n_rows, np.uint64)
        for own, numbers, sums in zip(classes, rows, histories, strict=True):
            own[numbers] = sums.of_row
            signatures += _random_words(sums.labels.shape[1] + 1)[own]
        _, first, of_row = np.unique(signatures, return_index=True, return_inverse=True)
        labels = np.vstack(
            [
                np.pad(sums.labels, ((0, 0), (0, 1)), constant_values=-1)[:, own]
                for own, sums in zip(classes[:, first], histories, strict=True)
            ]
        )
    return RowHistory(
        n_sums=n_sums,
        all_rows=n_totals > 0,
        whole=whole,
        of_row=of_row.astype(np.int32),
        labels=labels,
    )


def count_derivable_rows(
    history: RowHistory, rows: Sequence[IntArray], limits: Sequence[int]
) -> list[int]:
    """Return how many rows of each session can be derived from a merged history.

    The numbers are only upper bounds if none exceeds its limit, or if the history is
    incomplete.
    """
    if not history.whole:
        return [min(history.n_sums, len(numbers)) for numbers in rows]
    are_alone = history.are_alone
    bounds = [min(history.n_sums, int(are_alone[numbers].sum())) for numbers in rows]
    if all(bound <= limit for bound, limit in zip(bounds, limits, strict=True)):
        return bounds
    derivable = history.find_derivable_rows()
    return [int(derivable[numbers].sum()) for numbers in rows]


def _number_rows(tables: Sequence[WordArray]) -> tuple[WordArray, list[IntArray]]:
    """Return all distinct marks, and for each table the indices of its marks in them."""
    import pyarrow as pa  # a late import, as in id_marks

    # Arrow's hash table is much faster than sorting, as np.unique does
    encoded = pa.array(np.concatenate(tables)).dictionary_encode()
    ends = np.cumsum([len(marks) for marks in tables])
    rows = np.split(encoded.indices.to_numpy().astype(np.int64), ends[:-1])
    return encoded.dictionary.to_numpy(), rows


def _random_words(n: int) -> WordArray:
    """Return n random 64-bit words.

    Each class of rows has a word. Rows with equal sums of words belong to the same
    classes, except with negligible probability.
    """
    return np.frombuffer(secrets.token_bytes(8 * n), np.uint64)


_PRIME: Final = (1 << 31) - 1
_CHUNK: Final = 64
"""Number of classes whose coefficients are computed at once."""

_ORDERS: Final = 16


def reveals_few_rows(totals: Sequence[WordArray], minimum: int) -> bool:
    """Return whether a sum over few rows follows from the last total and the others.

    Each session releases the total of its rows. Rows that are in the same totals are one
    class, and a combination of totals gives each class one coefficient. If the coefficients
    of all classes but a few are zero, the combination is a sum over the rows of these few.

    The smallest such sum is hard to find (it is the distance of a linear code). We
    compute a reduced row echelon form, largest classes first, whose rows are
    combinations with few rows. This form contains every sum over a single class. The
    form contains the smallest sum if only one independent combination has no large
    class. If there are more such combinations, we repeat the computation with the small
    classes in random orders, which may still overlook a sum over several classes.
    Numbers are integers modulo a prime, so that no rounding error hides a zero.

    totals: uint64 (n,) each; the marks of the rows of each total.
    minimum: the fewest rows over which a sum may follow.
    """
    members, sizes = _group_equal_rows(totals)
    rng, is_small = np.random.default_rng(0), sizes < minimum
    order = np.argsort(-sizes, kind="stable")
    for attempt in range(_ORDERS):
        combinations, pivots = _echelon(members[:, order])
        is_new = combinations[:, -1] != 0
        if is_new[len(pivots) :].any():  # the last total follows from the others
            return False
        is_few = is_small[order[pivots]]
        candidates = combinations[: len(pivots)][is_few & is_new[: len(pivots)]]
        if not len(candidates):  # all combinations of the last total have large classes
            return False
        for combination in candidates:
            sums = (combination.astype(np.float64) @ members) % _PRIME
            if sizes[sums != 0].sum() < minimum:
                return True
        n_few = int(np.count_nonzero(is_few))
        if n_few <= 1 or attempt * n_few >= _ORDERS**2:  # many of them take long
            break
        order = np.append(
            order[~is_small[order]], rng.permutation(is_small.nonzero()[0])
        )
    return False


def _group_equal_rows(totals: Sequence[WordArray]) -> tuple[FloatArray, IntArray]:
    """Return how often each total contains each class (t, c), and the class sizes (c,)."""
    marks, rows = _number_rows(totals)
    signatures = np.zeros(len(marks), np.uint64)
    for numbers, word in zip(rows, _random_words(len(totals)), strict=True):
        np.add.at(signatures, numbers, word)
    _, first, sizes = np.unique(signatures, return_index=True, return_counts=True)
    members = [np.bincount(n, minlength=len(marks))[first] for n in rows]
    return np.array(members, dtype=np.float64), sizes


def _echelon(members: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the combinations (t, t) of totals that give a reduced row echelon form.

    Also returns the pivot classes (r,) of the first combinations; the others are zero.
    """
    n_totals, n_classes = members.shape
    combinations, pivots = np.eye(n_totals, dtype=np.int64), list[int]()
    for begin in range(0, n_classes, _CHUNK):
        columns = members[:, begin : begin + _CHUNK]
        # products with small integers are exact in float64
        values = (combinations.astype(np.float64) @ columns) % _PRIME
        rows = np.hstack([values.astype(np.int64), combinations])
        for column in range(columns.shape[1]):
            rank = len(pivots)
            candidates = rows[rank:, column].nonzero()[0]
            if not len(candidates):
                continue
            rows[[rank, rank + candidates[0]]] = rows[[rank + candidates[0], rank]]
            pivot = rows[rank] * pow(int(rows[rank, column]), -1, _PRIME) % _PRIME
            others = rows[:, column].nonzero()[0]
            factors = rows[others, column]
            rows[others] = (rows[others] - np.outer(factors, pivot)) % _PRIME
            rows[rank] = pivot
            pivots.append(begin + column)
        combinations = rows[:, columns.shape[1] :]
        if len(pivots) == n_totals:
            break
    return combinations, np.array(pivots, dtype=np.int64)
