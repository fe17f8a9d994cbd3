"""What each role of an honest session reads of the rows of others, as numbers.

Collected are arrays of records and envelopes, and sums of masked words and of shares.
What a role computes from these numbers does not count as further numbers.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np

from clustering_protocols import catalogue, engine
from clustering_protocols.contract import Example, Outcome
from clustering_protocols.contract.published import Selection
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy import envelopes, field
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.simulation import ANALYST, Session
from support.examples import begun

COORDINATOR: Final = "coordinator"
SEED: Final = 3
ADDED_UP: Final = ""
"""The sender of what several have sent and somebody added up."""


class Reading(NamedTuple):
    """An array that one role reads; sender: a role, or ``ADDED_UP``."""

    sender: str
    name: str
    array: FloatArray


class ReadSession(Session):
    """A session that keeps what each role's software reads.

    readings: by role: the analyst, the coordinator and each slot.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        self.readings: dict[str, list[Reading]] = defaultdict(list)
        self._role = ANALYST
        super().__init__(*args, **given)

    @property
    def reads_hidden(self) -> bool:
        """Return whether any role has read what several answers add up to."""
        return any(
            reading.sender == ADDED_UP
            for readings in self.readings.values()
            for reading in readings
        )

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep, meanwhile, the numbers that masked words and shares become."""
        fits, decode = FixedPoint.fits, FixedPoint.decode
        write_as_real, seal = field.write_as_real, envelopes.seal

        def fit(encoding: FixedPoint, words: WordArray) -> bool:
            readable = fits(encoding, words)
            if readable:
                self._add(self._role, ADDED_UP, "sums", decode(encoding, words))
            return readable

        def decoded(encoding: FixedPoint, words: WordArray) -> FloatArray:
            array = decode(encoding, words)
            self._add(self._role, ADDED_UP, "sums", array)
            return array

        def real(total: WordArray, unit: float, out: FloatArray) -> None:
            write_as_real(total, unit, out)
            self._add(self._role, ADDED_UP, "shares", out)

        def sealed(content: bytes, binding: envelopes.Binding, *keys: Any) -> bytes:
            for name, array in codec.decode(content)[1].items():
                self._add(binding.receiver, binding.sender, name, array)
            return seal(content, binding, *keys)

        with (
            patch.object(FixedPoint, "fits", fit),
            patch.object(FixedPoint, "decode", decoded),
            patch.object(field, "write_as_real", real),
            patch.object(envelopes, "seal", sealed),
        ):
            yield

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        self._role = slot
        self._open(slot, ANALYST, task)
        return super().ask_party(slot, task)

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        self._role = ANALYST
        for slot, contribution in contributions.items():
            self._open(ANALYST, slot, contribution)
        super().advance(contributions)

    def outcomes(self) -> dict[str, Outcome]:
        for slot, result in self.final_step.results.items():
            self._open(slot, ANALYST, result)
        if self.final_step.summary:
            self._open(COORDINATOR, ANALYST, self.final_step.summary)
        return super().outcomes()

    def rows_of(self, slot: str) -> FloatArray:
        """Return a party's rows that take part, in the order in which they travel."""
        memory, rows = self.memories[slot], matrix(self.data[slot])
        selection, order = memory.get(Selection), memory.get(RowOrder)
        taken = rows if selection is None else rows[selection.rows]
        return taken if order is None else taken[order.order]

    def _open(self, reader: str, sender: str, payload: bytes) -> None:
        for name, array in packets.parse(payload).arrays.items():
            self._add(reader, sender, name, array)

    def _add(self, reader: str, sender: str, name: str, array: Any) -> None:
        if np.asarray(array).dtype.kind == "f" and np.size(array):
            self.readings[reader].append(Reading(sender, name, np.array(array)))


class Equations(NamedTuple):
    """How many independent numbers a reader has, and of how many unknown ones.

    same_variables: whether the rows are of parties with the variables of the reader.
    aligned: whether each unknown column is nearly one of the numbers.
    of_rows: whether numbers are of each row; else of all rows together.
    """

    reader: str
    is_party: bool
    same_variables: bool
    count: int
    unknowns: int
    aligned: bool = False
    of_rows: bool = True


def play_example(example: Example[Any]) -> ReadSession:
    """Return the session of an example, run to its end."""
    session = begun(example, SEED, ReadSession)
    with session.collecting():
        session.run_to_end()
    return session


def has_hidden_answers(session: Session) -> bool:
    """Return whether parties send numbers that nobody reads alone."""
    received = [packets.parse(sent.payload) for sent in session.received_messages]
    kinds = {
        packet.header.record["kind"]
        for packet in received
        if any(array.size for array in packet.arrays.values())
    }
    stages = catalogue.protocol(session.session.terms.protocol.name).stages(
        session.session.params, session.session.layout
    )
    return any(
        exchange.answer.reach == "hidden"
        for stage in stages
        for exchange in stage.exchanges
        if exchange.answer.kind in kinds
    )


def equations(
    session: ReadSession, not_of_rows: Mapping[str, str]
) -> Iterator[Equations]:
    """Yield what each role reads of the rows of others.

    not_of_rows: names of arrays whose numbers are of no single row.
    """
    tables = {slot: session.rows_of(slot) for slot in session.session.slots}
    for reader in (ANALYST, COORDINATOR, *tables):
        readings = [
            each for each in session.readings[reader] if each.name not in not_of_rows
        ]
        yield from _equations_of(session, reader, readings, tables)


def _equations_of(
    session: ReadSession,
    reader: str,
    readings: Sequence[Reading],
    tables: Mapping[str, FloatArray],
) -> Iterator[Equations]:
    layout = session.session.layout
    groups = [layout.row_group(row) for row in range(layout.n_row_groups)]
    if reader in tables:
        groups = [group for group in groups if reader in group and len(group) > 1]
    left = list(readings)
    if reader not in tables and layout.n_column_groups == 1:
        joint = np.vstack([np.column_stack([tables[s] for s in g]) for g in groups])
        numbers, left = _per_row(left, len(joint), {ADDED_UP})
        yield _per_row_equations(reader, numbers, None, joint)
    for group in groups:
        others = np.column_stack([tables[slot] for slot in group if slot != reader])
        senders = {ADDED_UP, ANALYST, *group}
        numbers, left = _per_row(left, len(others), senders)
        yield _per_row_equations(reader, numbers, tables.get(reader), others)
    flat = [each.array.ravel() for each in left]
    count = len(np.unique(np.concatenate([np.empty(0), *flat])))
    for same in (True, False):
        unknowns = sum(
            tables[slot.name].size
            for slot in layout.slots
            if slot.name != reader
            and same == (reader in tables and _column(layout, reader) == slot.column)
        )
        if unknowns:
            yield Equations(
                reader, reader in tables, same, count, unknowns, of_rows=False
            )


def _column(layout: Any, slot: str) -> int:
    return int(layout.slot(slot).column)


def _per_row(
    readings: Sequence[Reading], n: int, senders: set[str]
) -> tuple[FloatArray, list[Reading]]:
    """Return numbers (n, q) of each of n rows, and the readings that are none."""
    numbers, left = [np.empty((n, 0))], []
    for reading in readings:
        array = reading.array
        if reading.sender not in senders:
            left.append(reading)
        elif array.shape == (n * (n - 1) // 2,) and n > 3:  # distances, condensed
            square = np.zeros((n, n))
            square[np.triu_indices(n, 1)] = array
            numbers.append(square + square.T)
        elif len(array) == n or (array.ndim == 1 and array.size % n == 0):
            numbers.append(array.reshape(n, -1))
        else:
            left.append(reading)
    return np.column_stack(numbers), left


def _per_row_equations(
    reader: str, numbers: FloatArray, own: FloatArray | None, others: FloatArray
) -> Equations:
    base = others[:, :0] if own is None or own.shape[1] > len(own) / 2 else own
    read, truth = _residuals(base, numbers), _residuals(base, others)
    alike = np.abs(read.T @ truth)
    aligned = bool(alike.size and (alike.max(axis=0) > _ALIKE).all())
    return Equations(
        reader,
        is_party=own is not None,
        same_variables=False,
        count=_rank(read),
        unknowns=_rank(truth),
        aligned=aligned,
    )


def _residuals(own: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return columns less what is linear in own ones; each of length 1, or left out."""
    base = np.linalg.qr(np.column_stack([np.ones(len(own)), own]))[0]
    spread = np.linalg.norm(numbers - numbers.mean(axis=0), axis=0)
    numbers = numbers[:, spread > 0] / spread[spread > 0]
    for _ in range(2):  # once more, for the rounding of the first
        numbers = numbers - base @ (base.T @ numbers)
    lengths = np.linalg.norm(numbers, axis=0)
    rest: FloatArray = numbers[:, lengths > _NUMERICAL] / lengths[lengths > _NUMERICAL]
    return rest


def _rank(columns: FloatArray) -> int:
    if not columns.size:
        return 0
    values = np.linalg.svd(columns, compute_uv=False)
    return int((values > _NUMERICAL * values[0]).sum())


_ALIKE: Final = 0.9
_NUMERICAL: Final = 1e-6
