"""Section 7: which task may come, and what stays of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from .derivations import Refusal
from .kinds import Kind, Record
from .records import Packet
from .roster import check_signatures, follow
from .session import Session

_REFUSED: Final = "task-refused"
_MOST_ATTEMPTS: Final = 5
_RECENT: Final = 3
_OF_RUN: Final = "\0"
Memory = dict[str, Any]
When = tuple[int, int]


def run_name(run: int | None, name: str) -> str:
    """Section 11, several runs: under which name a run remembers something."""
    return name if run is None else f"{name}{_OF_RUN}{run}"


@dataclass(frozen=True)
class View:
    """Section 13: what a party knows when it answers."""

    session: Session
    stage: str
    when: When
    transcripts: Mapping[When, str]
    memory: Memory
    run: int | None = None
    rounds: Mapping[str, int] = field(default_factory=dict)

    @property
    def transcript(self) -> str:
        """Section 7: the transcript of the attempt in hand."""
        return self.told(*self.when)

    def told(self, round_: int, attempt: int) -> str:
        """Section 7: the transcript of an attempt."""
        if (round_, attempt) not in self.transcripts:
            raise Refusal("protocol-failed")
        return self.transcripts[round_, attempt]

    def group(self, scope: str) -> list[str]:
        """Section 4: a group of this party."""
        return self.session.group(scope)

    def leads(self, scope: str) -> bool:
        """Section 4: whether this party leads a group."""
        return self.group(scope)[0] == self.session.slot

    def of_other_runs(self, name: str) -> list[Any]:
        """Section 11, several runs: what other runs remember under a name."""
        runs = range(len(self.session.runs))
        kept = [self.memory.get(run_name(run, name)) for run in runs if run != self.run]
        return [each for each in kept if each is not None]

    def recall(self, name: str) -> Any:
        """Section 11: what an earlier stage must have left."""
        if name not in self.memory:
            raise Refusal("protocol-failed")
        return self.memory[name]


@dataclass
class Reply:
    """Sections 7 and 8: a contribution, envelopes, and what to remember."""

    record: Record
    envelopes: list[tuple[str, Record]] = field(default_factory=list)
    awaits: list[str] = field(default_factory=list)
    remember: Memory = field(default_factory=dict)


class Role:
    """Sections 11 and 12: what a party does in a stage."""

    def reply(self, view: View, task: Record, /) -> Reply:
        """Section 7: answer a task."""
        raise NotImplementedError

    def receive(self, _view: View, _came: list[tuple[str, Record]], /) -> Memory:
        """Section 7: keep what envelopes brought. A stage that seals none has none."""
        raise Refusal("envelope-refused")


@dataclass(frozen=True)
class Exchange:
    """Section 7: a task and its contribution."""

    task: str
    answer: str
    least: int = 1
    most: int = 1
    audience: str = "all"
    own: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stage:
    """Section 7: a stage of a session; whether this party is asked in it."""

    name: str
    exchanges: tuple[Exchange, ...]
    role: Role
    envelopes: frozenset[str] = frozenset()
    asks_us: bool = True
    each_run: bool = False
    run: int | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def exchange(self, task: str) -> int:
        """Section 7: the place of an exchange."""
        names = [each.task for each in self.exchanges]
        if task not in names:
            raise Refusal("malformed")
        return names.index(task)


@dataclass(frozen=True)
class Journal:
    """Section 13: where a party stands among its tasks."""

    place: tuple[int, int] = (-1, 0)
    when: When = (0, 0)
    answered: Mapping[str, int] = field(default_factory=dict)
    asked: str = ""
    line: int = 0
    last: str = "0" * 64
    known: When = (0, 0)
    transcripts: Mapping[When, str] = field(default_factory=dict)
    recent: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    stage: str = ""
    rounds: Mapping[str, int] = field(default_factory=dict)

    def follow(self, session: Session, lines: Sequence[str]) -> Journal:
        """Section 7, lines: the journal after lines that follow."""
        transcripts, here = dict(self.transcripts), self.known
        line, last = self.line, self.last
        stage, rounds = self.stage, dict(self.rounds)
        for said, digest in follow(lines, session.agreement, self.line, self.last):
            there = (said["round"], said["attempt"])
            if there not in {(here[0], here[1] + 1), (here[0] + 1, 1)}:
                raise Refusal(_REFUSED)
            if there[0] == self.when[0] and session.slot in said["left_out"]:
                raise Refusal(_REFUSED)
            transcripts[there] = digest
            here, line, last = there, said["number"], digest
            if said["stage"] != stage:
                stage, rounds = said["stage"], {}
            if said["attempt"] == 1:
                rounds[said["asks"]] = rounds.get(said["asks"], 0) + 1
        return replace(
            self,
            transcripts=transcripts,
            known=here,
            line=line,
            last=last,
            stage=stage,
            rounds=rounds,
        )


def read_entry(packet: Packet) -> dict[str, Any]:
    """Section 7, lines: the last line, which is that of the packet itself."""
    said: dict[str, Any] = json.loads(packet.lines[-1]) if packet.lines else {}
    names = ("stage", "round", "attempt")
    if [said.get(n) for n in names] != [packet.address[n] for n in names]:
        raise Refusal(_REFUSED)
    return said


def check_told(
    session: Session,
    told: Sequence[str],
    audience: str,
    packet: Packet,
    own_fields: frozenset[str] = frozenset(),
) -> None:
    """Section 7, audience: the digest of this party's group is that of the content."""
    groups = session.groups(audience)
    own = next(n for n, group in enumerate(groups) if session.slot in group)
    if (
        list(told[own : own + 1]) != [packet.content_digest]
        or set(packet.own) != own_fields
    ):
        raise Refusal(_REFUSED)


def admit(
    session: Session, stages: Sequence[Stage], journal: Journal, packet: Packet
) -> Journal:
    """Section 7, which task may come: 4 to 10; the journal after it."""
    said, here = read_entry(packet), packet.address
    if said["asks"] != packet.kind or session.slot in said["left_out"]:
        raise Refusal(_REFUSED)
    number = [stage.name for stage in stages].index(here["stage"])
    exchange = stages[number].exchange(packet.kind)
    if number < len(stages) - 1 or packet.kind == "conclude":
        asks = stages[number].exchanges[exchange]
        check_told(session, said["told"], asks.audience, packet, asks.own)
    if here["attempt"] > _MOST_ATTEMPTS or here["round"] < journal.when[0]:
        raise Refusal(_REFUSED)
    when, asked = (here["round"], here["attempt"]), _digest(packet)
    members = tuple(packet.record["values"].get("members", ()))
    if here["round"] == journal.when[0]:
        more = set(members) - set(journal.members)
        if here["attempt"] < journal.when[1] or asked != journal.asked or more:
            raise Refusal(_REFUSED)
        return replace(journal, when=when, members=members)
    if journal.place[0] == 0:
        opening = journal.transcripts[journal.when]
        check_signed(session, "opening", opening, packet, len(session.slots))
    place = (number, exchange)
    if place < journal.place:
        raise Refusal(_REFUSED)
    check_skipped(stages, journal, place)
    answered = dict(journal.answered) if number == journal.place[0] else {}
    answered[packet.kind] = answered.get(packet.kind, 0) + 1
    if answered[packet.kind] > stages[number].exchanges[exchange].most:
        raise Refusal(_REFUSED)
    recent = (*journal.recent, when[0])[-_RECENT:]
    return replace(
        journal,
        place=place,
        when=when,
        answered=answered,
        asked=asked,
        recent=recent,
        members=members,
    )


def check_skipped(
    stages: Sequence[Stage], journal: Journal, place: tuple[int, int]
) -> None:
    """Section 7, which task may come, 9: nothing was left out before a place."""
    for number, stage in enumerate(stages):
        for index, exchange in enumerate(stage.exchanges):
            if not journal.place <= (number, index) < place or not stage.asks_us:
                continue
            here = number == journal.place[0]
            if (journal.answered.get(exchange.task, 0) if here else 0) < exchange.least:
                raise Refusal(_REFUSED)


def check_signed(
    session: Session, stage: str, transcript: str, packet: Packet, least: int
) -> None:
    """Section 7, opening and closing: as many have signed as have to."""
    keys = {slot: each["keys"]["ed25519"] for slot, each in session.roster.items()}
    signatures = [each.hex() for each in packet.signatures]
    check_signatures(stage, transcript, keys, signatures, least)


def check_envelopes(journal: Journal, packet: Packet, awaited: Sequence[str]) -> None:
    """Section 7, envelopes: those that are awaited came, and none that is too old."""
    labels, here = packet.header["envelopes"], packet.address["round"]
    if set(awaited) - {label["peer"] for label in labels}:
        raise Refusal("envelope-refused")
    before = max((each for each in journal.recent if each < here), default=0)
    for label in labels:
        attempts = [a for r, a in journal.transcripts if r == label["round"]]
        fresh = before <= label["round"] < here
        if not fresh or label["attempt"] != max(attempts, default=0):
            raise Refusal("envelope-refused")


def _digest(packet: Packet) -> str:
    """Section 7, attempts: of what is the same in all attempts of a round."""
    sealed = [sha256(each).hexdigest() for each in packet.sealed]
    values = {n: v for n, v in packet.record["values"].items() if n != "members"}
    arrays = {n: sha256(a.tobytes()).hexdigest() for n, a in packet.arrays.items()}
    said = [packet.kind, values, arrays, packet.header["envelopes"], sealed]
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
