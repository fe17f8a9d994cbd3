"""The state of a session that the analyst stores between rounds.

Envelopes are delivered with the next task of their receiver. Results are withheld until
all parties have signed the transcript.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Generic

import numpy as np
from typing_extensions import Buffer, TypeVar, override

from clustering_protocols.contract import Run, SessionContext, Stage
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.cluster_numbers import round_sizes
from clustering_protocols.engine.packets import UNSIGNED, Address, Envelope, Mail
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.records.arrays import ByteArray, IntArray, Spec
from clustering_protocols.records.codec import JoinedBytes
from clustering_protocols.records.record import Record

_OPENED: Final = (
    transcript.AGREED + 1
)  # the line of the opening round, which all parties sign
_RUNS: Final = "kept"  # the name of the array that holds the runs as JSON


class AnalystState(Record):
    """The encoded state of the analyst between two rounds.

    stage, round, attempt, quorum: those of the open round.
    n_rows: int64 (slots,), in the order of the slots; the number of participating rows,
        or -1 for a slot without a selection of rows.
    reached: int64 (slots,); the number of the last transcript line that each slot has
        answered.
    stage_state: uint8; the state of the stage's role.
    history: uint8; the lines of the transcript that some slot may not have received
        yet.
    held: uint8; the results, until all parties have signed.
    mail: uint8; envelopes for slots that have no task in the open round.
    signatures: uint8 (s, 64); the signatures of the opening, until every slot has
        received them.
    """

    kind = "analyst-state"
    version = 3

    stage: int
    round: int
    attempt: int
    quorum: int
    n_rows: Annotated[IntArray, Spec("slots")]
    reached: Annotated[IntArray, Spec("slots")]
    stage_state: Annotated[ByteArray, Spec("bytes")]
    history: Annotated[ByteArray, Spec("characters")]
    signatures: Annotated[ByteArray, Spec("s", packets.SIGNATURE_BYTES)]
    held: Annotated[ByteArray, Spec("held")]
    mail: Annotated[ByteArray, Spec("mail")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingResults:
    """The results of each run or, once a run is chosen, of that run only.

    Results have an entry for each row and may be large. To save memory, the pieces of
    an encoded result are joined only when the state is encoded.

    runs: JSON values for each run: the name of each slot's record, the quality figures,
        the cluster sizes, and whether the run is chosen.
    records: mapping of name to an encoded record.
    """

    runs: Sequence[Mapping[str, Any]] = ()
    records: Mapping[str, JoinedBytes] = field(default_factory=dict, repr=False)

    @classmethod
    def decode(cls, content: ByteArray) -> PendingResults:
        """Parse results from the bytes that :meth:`pieces` returned."""
        if not content.size:
            return cls()
        _, arrays = codec.decode(content.data)
        runs = json.loads(arrays.pop(_RUNS).tobytes())
        records = {name: JoinedBytes((array.data,)) for name, array in arrays.items()}
        return cls(runs=runs, records=records)

    def pieces(self) -> JoinedBytes:
        """Return the bytes to store; empty if there are no results."""
        if not self.runs:
            return JoinedBytes(())
        # The header is too small for the slots of many runs.
        text = np.frombuffer(json.dumps(self.runs).encode(), np.uint8)
        return JoinedBytes(tuple(codec.pieces({}, {**self.records, _RUNS: text})))

    def add_runs(self, runs: Sequence[Run]) -> PendingResults:
        """Return the results with more runs; a record that slots share is stored once."""
        all_runs, encoded = list(self.runs), dict(self.records)
        for run in runs:
            records = dict(run.results)
            if run.summary is not None:
                records[""] = run.summary  # "" cannot be the name of a slot
            distinct = {id(record): record for record in records.values()}
            names = {k: f"record.{len(all_runs)}.{i}" for i, k in enumerate(distinct)}
            encoded |= {names[key]: r.pieces() for key, r in distinct.items()}
            all_runs.append(
                {
                    "records": {slot: names[id(r)] for slot, r in records.items()},
                    "figures": None if run.figures is None else run.figures.values,
                    "sizes": round_sizes(run.summary),
                }
            )
        return PendingResults(runs=all_runs, records=encoded)

    def choose_run(self, chosen: int) -> PendingResults:
        """Return the chosen run's records, together with the figures of all runs."""
        names = set(self.runs[chosen]["records"].values())
        runs = [
            {
                **run,
                "records": run["records"] if n == chosen else {},
                "chosen": n == chosen,
            }
            for n, run in enumerate(self.runs)
        ]
        records = {name: self.records[name] for name in sorted(names)}
        return PendingResults(runs=runs, records=records)

    @property
    def chosen_run(self) -> int | None:
        """Return the number of the chosen run, or None before one is chosen."""
        return next((n for n, run in enumerate(self.runs) if run.get("chosen")), None)

    @property
    def figures(self) -> list[Figures]:
        """Return the figures of all runs; empty if any run has none."""
        figures = [run["figures"] for run in self.runs]
        return [] if None in figures else [Figures(**values) for values in figures]

    @property
    def compared_figures(self) -> list[Figures]:
        """Return the figures of several runs; empty for one run, whose result has them."""
        return self.figures if len(self.runs) > 1 else []

    @property
    def conclusion(self) -> Conclusion:
        """Return the figures and sizes of all runs, and the chosen run's number."""
        figures = [figures.values for figures in self.figures]
        sizes = [run.get("sizes", []) for run in self.runs]
        several = len(figures) > 1
        return Conclusion(
            figures=figures, sizes=sizes if several else [], chosen=self.chosen_run or 0
        )

    @property
    def _names(self) -> Mapping[str, str]:
        return self.runs[self.chosen_run or 0]["records"] if self.runs else {}

    @property
    def results_by_slot(self) -> dict[str, ByteArray]:
        """Return the results by slot, and the coordinator's summary under ``""``."""
        names = self._names
        records = {name: self.records[name].join() for name in set(names.values())}
        return {slot: records[name] for slot, name in names.items()}

    @property
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 (hex) of each slot's result, once a run is chosen."""
        names = {slot: name for slot, name in self._names.items() if slot}
        digests = {name: self.records[name].digest() for name in set(names.values())}
        return {slot: digests[name] for slot, name in names.items()}


def _decode_mail(content: ByteArray) -> Mail:
    if not len(content):
        return ()
    header, arrays = codec.decode(content.data)
    mail = []
    for number, (receiver, label_values) in enumerate(header["mail"]):
        sealed = arrays[f"envelope.{number}"].tobytes()
        label = packets.EnvelopeLabel.model_validate(label_values)
        mail.append((receiver, Envelope(label=label, sealed=sealed)))
    return mail


def _encode_mail(mail: Mail) -> ByteArray:
    if not mail:
        return np.empty(0, np.uint8)
    header = [[to, envelope.label.model_dump()] for to, envelope in mail]
    arrays = {
        f"envelope.{number}": np.frombuffer(envelope.sealed, np.uint8)
        for number, (_, envelope) in enumerate(mail)
    }
    return np.frombuffer(codec.encode({"mail": header}, arrays), np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingSession:
    """A session between two rounds, in memory; fields as in :class:`AnalystState`.

    lines: the last lines of the transcript, which some slot may not have received yet.
    mail: envelopes to deliver with the next task of their receivers.
    """

    session: SessionContext
    stages: Sequence[Stage]
    lines: Sequence[str]
    reached: Mapping[str, int]
    index: int = 0
    round: int = 0
    attempt: int = 0
    quorum: int = 0
    stage_state: Buffer = field(default=b"", repr=False)
    signatures: ByteArray = field(default_factory=lambda: UNSIGNED)
    results: PendingResults = PendingResults()
    mail: Mail = ()

    @classmethod
    def begin(cls, session: SessionContext, stages: Sequence[Stage]) -> OngoingSession:
        """Return a session before its first round."""
        return cls(
            session=session,
            stages=stages,
            lines=[transcript.format_first_line(session)],
            reached=dict.fromkeys(session.slots, 0),
        )

    @classmethod
    def decode(
        cls, session: SessionContext, stages: Sequence[Stage], state: Buffer
    ) -> OngoingSession:
        """Parse a session from the bytes that :meth:`encode` returned."""
        record = AnalystState.decode(state)
        n_rows = dict(zip(session.slots, record.n_rows.tolist(), strict=True))
        return cls(
            session=session.with_rows(
                {slot: n for slot, n in n_rows.items() if n >= 0}
            ),
            stages=stages,
            lines=record.history.tobytes().decode().split("\n"),
            reached=dict(zip(session.slots, record.reached.tolist(), strict=True)),
            index=record.stage,
            round=record.round,
            attempt=record.attempt,
            quorum=record.quorum,
            stage_state=record.stage_state.data,
            signatures=record.signatures,
            results=PendingResults.decode(record.held),
            mail=_decode_mail(record.mail),
        )

    @property
    def stage(self) -> Stage:
        """Return the current stage."""
        return self.stages[self.index]

    @property
    def run_session(self) -> SessionContext:
        """Return the session context of the run to which the current stage belongs."""
        return self.session.for_run(self.stage.run)

    @property
    def is_last_stage(self) -> bool:
        """Return whether the current stage is the closing."""
        return self.index == len(self.stages) - 1

    @property
    def present_slots(self) -> list[str]:
        """Return the slots that have answered the last round."""
        last = max(self.reached.values())
        return [slot for slot, number in self.reached.items() if number == last]

    def record_answers(self, slots: Iterable[str]) -> OngoingSession:
        """Return the session after these slots have answered the open round."""
        last = transcript.line_number(self.lines[-1])
        reached = {**self.reached, **dict.fromkeys(slots, last)}
        first = min(reached.values())
        return replace(
            self,
            reached=reached,
            lines=transcript.lines_after(self.lines, min(first, last - 1)),
            signatures=self.signatures if first <= _OPENED else UNSIGNED,
        )

    def collect_signatures(self, records: Mapping[str, Record]) -> OngoingSession:
        """Return the session with the signatures of the opening or the closing.

        Raises ProtocolFailed if a slot signed another transcript, or too few signed
            this one.
        """
        if self.index and not self.is_last_stage:
            return self
        collected = signatures.collect_signatures(self.session, records)
        digest = hash_chain.digest(self.lines[-1])
        signatures.check_signatures(
            self.session, self.stage.name, digest, collected, self.quorum
        )
        return replace(self, signatures=collected)

    def with_mail(self, mail: Mail) -> OngoingSession:
        """Return the session with additional envelopes to deliver."""
        return replace(self, mail=[*self.mail, *mail])

    def list_unanswered_lines(self, slot: str) -> Sequence[str]:
        """Return the lines since a slot's last answer, and always the last line."""
        last = transcript.line_number(self.lines[-1])
        return transcript.lines_after(self.lines, min(self.reached[slot], last - 1))

    def list_unseen_signatures(self, slot: str) -> ByteArray:
        """Return the opening's signatures if the slot lacks them, or an empty array."""
        return self.signatures if self.reached[slot] == _OPENED else UNSIGNED

    def address(self, slot: str) -> Address:
        """Return the address of a packet for a slot, or for the coordinator ("")."""
        return Address(
            session=self.session.terms.session,
            agreement=self.session.agreement_digest,
            slot=slot,
            stage=self.stage.name,
            round=self.round,
            attempt=self.attempt,
        )

    def encode(self, state: Record, quorum: int, slots: Collection[str]) -> bytes:
        """Return the bytes of an :class:`AnalystState` with tasks for these slots."""
        record = AnalystState(
            stage=self.index,
            round=self.round,
            attempt=self.attempt,
            quorum=quorum,
            n_rows=np.array(
                [self.session.selected.get(slot, -1) for slot in self.session.slots]
            ),
            reached=np.array([self.reached[slot] for slot in self.session.slots]),
            stage_state=np.frombuffer(state.encode(), np.uint8),
            history=np.frombuffer("\n".join(self.lines).encode(), np.uint8),
            signatures=self.signatures,
            held=np.empty(0, np.uint8),
            mail=_encode_mail([item for item in self.mail if item[0] not in slots]),
        )
        return record.encode(held=self.results.pieces())


Payload = TypeVar("Payload", default=bytes)
Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The figures of all runs, as JSON values, and the number of the chosen run.

    sizes: the cluster sizes of each of several runs, rounded to multiples of five;
        empty for a single run.
    chosen: 0 before a run is chosen.
    """

    figures: list[dict[str, Any]]
    sizes: list[list[int]] = field(default_factory=list)
    chosen: int


class _StoredMove(ABC, Generic[Payload]):
    """A move with payloads: bytes, or digests under which the bytes are stored."""

    __slots__ = ()

    @abstractmethod
    def map_payloads(self, store: Callable[[Payload], Stored]) -> Move[Stored]:
        """Return this move with a function applied to each payload."""

    @property
    def payloads(self) -> list[Payload]:
        """Return the state and all tasks, or all results followed by the summary."""
        payloads: list[Payload] = []
        self.map_payloads(payloads.append)
        return payloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(_StoredMove[Payload]):
    """A move that opens a round: store the state, send the tasks, await contributions."""

    round: int
    attempt: int
    stage: str
    stage_index: int
    n_stages: int
    quorum: int
    state: Payload = field(repr=False)
    tasks: Mapping[str, Payload] = field(repr=False)
    progress: Mapping[str, Any] | None = None  # None if unchanged
    conclusion: Conclusion | None = None  # None until a run is chosen
    profiles: list[dict[str, Any]] | None = None  # None until published

    @override
    def map_payloads(self, store: Callable[[Payload], Stored]) -> Opened[Stored]:
        opened: Opened[Any] = self
        state = store(self.state)
        tasks = {slot: store(task) for slot, task in self.tasks.items()}
        return replace(opened, state=state, tasks=tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing(_StoredMove[Payload]):
    """A move for which the coordinator must choose one of the completed runs."""

    state: Payload = field(repr=False)
    conclusion: Conclusion

    @override
    def map_payloads(self, store: Callable[[Payload], Stored]) -> Choosing[Stored]:
        return Choosing(state=store(self.state), conclusion=self.conclusion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(_StoredMove[Payload]):
    """A move that completes the session and publishes its results."""

    results: Mapping[str, Payload] = field(repr=False)
    summary: Payload | None = field(repr=False)

    @override
    def map_payloads(self, store: Callable[[Payload], Stored]) -> Closed[Stored]:
        results = {slot: store(result) for slot, result in self.results.items()}
        summary = None if self.summary is None else store(self.summary)
        return Closed(results=results, summary=summary)


Move = Opened[Payload] | Choosing[Payload] | Closed[Payload]
