"""Where a session stands, as the analyst keeps it from round to round.

Envelopes go out with the next task of their receiver; who is not asked gets them later.
Results are kept back until everybody has signed what everybody was told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Generic

import numpy as np
from typing_extensions import Buffer, TypeVar

from clustering_protocols.contract import Run, SessionContext, Stage
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.cluster_numbers import number_run, round_sizes
from clustering_protocols.engine.packets import UNSIGNED, Address, Envelope, Mail
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.records.arrays import ByteArray, Spec
from clustering_protocols.records.codec import JoinedBytes
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import profiles as profiling

_OPENED: Final = transcript.AGREED + 1  # the line of the opening, which everybody signs
_RUNS: Final = "kept"  # the array of what is said of the runs


class AnalystState(Record):
    """The analyst's state between two rounds, as bytes.

    stage, round, attempt, quorum: of the open round.
    n_rows: how many rows take part, of slots of which a stage has selected some.
    reached: for each slot, the number of the last line of the transcript that it has
        answered.
    stage_state, history, held, mail: uint8 arrays; the state of the stage's role; the
        lines of the transcript that a slot may lack; the results, until everybody has
        signed; envelopes for slots that are not asked.
    signatures: uint8 (s, 64); those of the opening, until every slot has got them.
    """

    kind = "analyst-state"
    version = 3

    stage: int
    round: int
    attempt: int
    quorum: int
    n_rows: dict[str, int]
    reached: dict[str, int]
    stage_state: Annotated[ByteArray, Spec("bytes")]
    history: Annotated[ByteArray, Spec("characters")]
    signatures: Annotated[ByteArray, Spec("s", packets.SIGNATURE_BYTES)]
    held: Annotated[ByteArray, Spec("held")]
    mail: Annotated[ByteArray, Spec("mail")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingResults:
    """The results of each run, until one is chosen; then those of the chosen one.

    Results are as long as there are rows: their bytes lie in pieces until the state is
    written.

    runs: JSON values: of each run its records' names by slot, its figures, and whether
        it is chosen.
    records: mapping of name to an encoded record.
    """

    runs: Sequence[Mapping[str, Any]] = ()
    records: Mapping[str, JoinedBytes] = field(default_factory=dict, repr=False)

    @classmethod
    def decode(cls, content: ByteArray) -> PendingResults:
        """Return what :meth:`pieces` wrote."""
        if not content.size:
            return cls()
        _, arrays = codec.decode(content.data)
        runs = json.loads(arrays.pop(_RUNS).tobytes())
        records = {name: JoinedBytes((each.data,)) for name, each in arrays.items()}
        return cls(runs=runs, records=records)

    def pieces(self) -> JoinedBytes:
        """Return the bytes to keep; none where nothing is held."""
        if not self.runs:
            return JoinedBytes(())
        # not in the header, which has no room for the slots of many runs
        text = np.frombuffer(json.dumps(self.runs).encode(), np.uint8)
        return JoinedBytes(tuple(codec.pieces({}, {**self.records, _RUNS: text})))

    def keep_runs(self, runs: Sequence[Run]) -> PendingResults:
        """Return what is held with more runs; a record for several slots only once."""
        kept, encoded = list(self.runs), dict(self.records)
        for run in runs:
            records = dict(run.results)
            if run.summary is not None:
                records[""] = run.summary  # no slot has an empty name
            once = {id(record): record for record in records.values()}
            names = {key: f"record.{len(kept)}.{i}" for i, key in enumerate(once)}
            encoded |= {names[key]: each.pieces() for key, each in once.items()}
            kept.append(
                {
                    "records": {
                        slot: names[id(each)] for slot, each in records.items()
                    },
                    "figures": None if run.figures is None else run.figures.values,
                    "sizes": round_sizes(run.summary),
                }
            )
        return PendingResults(runs=kept, records=encoded)

    def choose_run(self, run: int) -> PendingResults:
        """Return what is held once a run is chosen: its records, the figures of all."""
        names = set(self.runs[run]["records"].values())
        told = [
            {**each, "records": each["records"] if n == run else {}, "chosen": n == run}
            for n, each in enumerate(self.runs)
        ]
        return PendingResults(
            runs=told, records={name: self.records[name] for name in sorted(names)}
        )

    @property
    def chosen_run(self) -> int | None:
        """Return the number of the chosen run; None before one is chosen."""
        return next((n for n, each in enumerate(self.runs) if each.get("chosen")), None)

    @property
    def figures(self) -> list[Figures]:
        """Return the figures of all runs; none where one of them has none."""
        found = [run["figures"] for run in self.runs]
        return [] if None in found else [Figures(**each) for each in found]

    @property
    def conclusion(self) -> Conclusion:
        """Return what the runs are like, and which of them counts."""
        figures = [each.values for each in self.figures]
        sizes = [run.get("sizes", []) for run in self.runs]
        several = len(figures) > 1
        return Conclusion(
            figures=figures, sizes=sizes if several else [], chosen=self.chosen_run or 0
        )

    @property
    def _names(self) -> Mapping[str, str]:
        """Return the names of the chosen run's records by slot."""
        return self.runs[self.chosen_run or 0]["records"] if self.runs else {}

    @property
    def by_slot(self) -> dict[str, ByteArray]:
        """Return each slot's result; under an empty name what the coordinator may read."""
        names = self._names
        once = {name: self.records[name].join() for name in set(names.values())}
        return {slot: once[name] for slot, name in names.items()}

    @property
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 (hex) of each slot's result, once a run is chosen."""
        names = {slot: name for slot, name in self._names.items() if slot}
        once = {name: self.records[name].digest() for name in set(names.values())}
        return {slot: once[name] for slot, name in names.items()}


@dataclass(frozen=True, slots=True)
class PendingEnvelopes:
    """Envelopes on their way: each goes out with the next task of its receiver."""

    mail: Mail = ()

    @classmethod
    def decode(cls, content: ByteArray) -> PendingEnvelopes:
        """Return what :meth:`encode` wrote."""
        if not len(content):
            return cls()
        header, arrays = codec.decode(content.data)
        mail = []
        for number, (to, label) in enumerate(header["mail"]):
            sealed = arrays[f"envelope.{number}"].tobytes()
            known = packets.EnvelopeLabel.model_validate(label)
            mail.append((to, Envelope(label=known, sealed=sealed)))
        return cls(mail)

    def encode(self, asked: Collection[str]) -> ByteArray:
        """Return the bytes to keep: of envelopes for slots that are not asked now."""
        mail = [each for each in self.mail if each[0] not in asked]
        if not mail:
            return np.empty(0, np.uint8)
        header = [[to, envelope.label.model_dump()] for to, envelope in mail]
        arrays = {
            f"envelope.{number}": np.frombuffer(envelope.sealed, np.uint8)
            for number, (_, envelope) in enumerate(mail)
        }
        return np.frombuffer(codec.encode({"mail": header}, arrays), np.uint8)

    def list_of(self, slot: str) -> list[Envelope]:
        """Return the envelopes for a receiver."""
        return [envelope for to, envelope in self.mail if to == slot]


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingSession:
    """A session between two rounds, in memory; fields as in :class:`AnalystState`.

    lines: of the transcript: those that a slot may lack, the last one at least.
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
    envelopes: PendingEnvelopes = PendingEnvelopes()

    @classmethod
    def begin(cls, session: SessionContext, stages: Sequence[Stage]) -> OngoingSession:
        """Return a session before its first round."""
        return cls(
            session=session,
            stages=stages,
            lines=[transcript.write_first_line(session)],
            reached=dict.fromkeys(session.slots, 0),
        )

    @classmethod
    def decode(
        cls, session: SessionContext, stages: Sequence[Stage], state: Buffer
    ) -> OngoingSession:
        """Return the session as a state keeps it: what :meth:`encode` wrote."""
        known = AnalystState.decode(state)
        return cls(
            session=session.with_rows(known.n_rows),
            stages=stages,
            lines=known.history.tobytes().decode().split("\n"),
            reached=known.reached,
            index=known.stage,
            round=known.round,
            attempt=known.attempt,
            quorum=known.quorum,
            stage_state=known.stage_state.data,
            signatures=known.signatures,
            results=PendingResults.decode(known.held),
            envelopes=PendingEnvelopes.decode(known.mail),
        )

    @property
    def stage(self) -> Stage:
        """Return the stage in hand."""
        return self.stages[self.index]

    @property
    def run_session(self) -> SessionContext:
        """Return the session as the stage in hand sees it: its run's parameters."""
        return self.session.of_run(self.stage.run)

    @property
    def is_last_stage(self) -> bool:
        """Return whether the stage in hand is the closing."""
        return self.index == len(self.stages) - 1

    @property
    def is_after_runs(self) -> bool:
        """Return whether the protocol's own stages are over."""
        return self.is_last_stage or self.stage.name == profiling.NAME

    @property
    def present(self) -> list[str]:
        """Return the slots that have answered the last round."""
        last = max(self.reached.values())
        return [slot for slot, number in self.reached.items() if number == last]

    def record_answers(self, slots: Iterable[str]) -> OngoingSession:
        """Return the session once these slots have answered the open round."""
        last = transcript.number_of(self.lines[-1])
        reached = {**self.reached, **dict.fromkeys(slots, last)}
        least = min(reached.values())
        return replace(
            self,
            reached=reached,
            lines=transcript.since(self.lines, min(least, last - 1)),
            signatures=self.signatures if least <= _OPENED else UNSIGNED,
        )

    def collect_signatures(self, records: Mapping[str, Record]) -> OngoingSession:
        """Return the session with the signatures of the opening, or of the closing.

        Raises ProtocolFailed if one signs another transcript, or too few sign it.
        """
        if self.index and not self.is_last_stage:
            return self
        found = signatures.collect(self.session, records)
        told = hash_chain.digest(self.lines[-1])
        signatures.check(self.session, self.stage.name, told, found, self.quorum)
        return replace(self, signatures=found)

    def end_stage(self, runs: Sequence[Run]) -> OngoingSession:
        """Return the session before its next stage, with the results of runs."""
        results = self.results.keep_runs([number_run(self.session, r) for r in runs])
        return replace(self, results=results, index=self.index + 1)

    def choose_run(self, run: int) -> OngoingSession:
        """Return the session once a run is chosen."""
        return replace(self, results=self.results.choose_run(run))

    def with_mail(self, mail: Mail) -> OngoingSession:
        """Return the session with more envelopes on their way."""
        both = [*self.envelopes.mail, *mail]
        return replace(self, envelopes=PendingEnvelopes(both))

    def list_unanswered_lines(self, slot: str) -> Sequence[str]:
        """Return the lines of the transcript that a slot has not answered, and the last."""
        last = transcript.number_of(self.lines[-1])
        return transcript.since(self.lines, min(self.reached[slot], last - 1))

    def list_unseen_signatures(self, slot: str) -> ByteArray:
        """Return the signatures of the opening, for a slot that has not seen them."""
        return self.signatures if self.reached[slot] == _OPENED else UNSIGNED

    def address(self, slot: str) -> Address:
        """Return where a packet for a slot, or the coordinator (empty), belongs."""
        return Address(
            session=self.session.terms.session,
            agreement=self.session.agreement_digest,
            slot=slot,
            stage=self.stage.name,
            round=self.round,
            attempt=self.attempt,
        )

    def encode(self, state: Record, quorum: int, asked: Collection[str]) -> bytes:
        """Return the bytes of an :class:`AnalystState`: what is held is joined here."""
        kept = AnalystState(
            stage=self.index,
            round=self.round,
            attempt=self.attempt,
            quorum=quorum,
            n_rows=dict(self.session.selected),
            reached=dict(self.reached),
            stage_state=np.frombuffer(state.encode(), np.uint8),
            history=np.frombuffer("\n".join(self.lines).encode(), np.uint8),
            signatures=self.signatures,
            held=np.empty(0, np.uint8),
            mail=self.envelopes.encode(asked),
        )
        return kept.encode(held=self.results.pieces())


Payload = TypeVar("Payload", default=bytes)
Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the runs are like, as JSON values, and which of them counts.

    sizes: of the clusters of each of several runs, in fives; empty of a single run.
    """

    figures: list[dict[str, Any]]
    sizes: list[list[int]] = field(default_factory=list)
    chosen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Generic[Payload]):
    """A round is open: keep the state, hand out the tasks, wait for contributions.

    Generic in the payload: state and tasks are bytes, or the digests under which the
    bytes are stored.
    """

    round: int
    attempt: int
    stage: str
    stage_index: int
    n_stages: int
    quorum: int
    state: Payload = field(repr=False)
    tasks: Mapping[str, Payload] = field(repr=False)
    progress: Mapping[str, Any] | None = None  # None: as before
    conclusion: Conclusion | None = None  # once a run is chosen
    profiles: list[dict[str, Any]] | None = None  # once they are told, as JSON values

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Opened[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Opened(
            round=self.round,
            attempt=self.attempt,
            stage=self.stage,
            stage_index=self.stage_index,
            n_stages=self.n_stages,
            quorum=self.quorum,
            state=put(self.state),
            tasks={slot: put(task) for slot, task in self.tasks.items()},
            progress=self.progress,
            conclusion=self.conclusion,
            profiles=self.profiles,
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return state and tasks."""
        return [self.state, *self.tasks.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing(Generic[Payload]):
    """All runs are done: the coordinator says which of them counts.

    figures: of each run, as JSON values.
    sizes: of the clusters of each run, in fives.
    """

    state: Payload = field(repr=False)
    figures: list[dict[str, Any]]
    sizes: list[list[int]] = field(default_factory=list)

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Choosing[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Choosing(state=put(self.state), figures=self.figures, sizes=self.sizes)

    @property
    def payloads(self) -> list[Payload]:
        """Return the state."""
        return [self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Generic[Payload]):
    """The session is complete."""

    results: Mapping[str, Payload] = field(repr=False)
    summary: Payload | None = field(repr=False)

    def map_payloads(self, put: Callable[[Payload], Stored]) -> Closed[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Closed(
            results={slot: put(result) for slot, result in self.results.items()},
            summary=None if self.summary is None else put(self.summary),
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return results and summary."""
        summary = [] if self.summary is None else [self.summary]
        return [*self.results.values(), *summary]


Move = Opened[Payload] | Choosing[Payload] | Closed[Payload]
