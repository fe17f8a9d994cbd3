"""Orders: what their files hold, and how they are placed, answered and withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from enum import IntEnum, StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.wire.states import OVER, SessionState, SlotState
from party_sdk.admission.table_files import NamedTable
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.home import Home
from party_sdk.home.clock import now
from party_sdk.home.files import (
    private_folder,
    read_private,
    wait_for_lock,
    write_private,
)
from party_sdk.home.policy import Policy
from party_sdk.party.leave import come_back
from party_sdk.party.party_index import KeptParty, kept_parties
from party_sdk.party.party_session import PartySession

_PATIENCE: Final = 10.0  # seconds: somebody waits for the end of an order
_M = TypeVar("_M", bound=BaseModel)


class _StoredModel(BaseModel):
    """A value that a file holds; one of a newer release says more, and is read still."""

    model_config = ConfigDict(frozen=True)


class OrderedTable(_StoredModel):
    """A table and how to read it: what the options of ``party run`` say.

    path: of a file, absolute.
    id_column, columns: as ``--id-column`` and ``--columns``; no columns stand for all
        but the ids.
    csv: as ``--csv``: texts such as ``delimiter=;``.
    mapping: the text of the file of ``--mapping``; its levels are cells, and ``repr``
        does not show them. By default the one that the home keeps counts.
    """

    path: str
    id_column: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    mapping: str | None = Field(default=None, repr=False)

    def to_named_table(self) -> NamedTable:
        """Return the table, to be opened.

        Raises InvalidParameters if ``csv`` holds what is not known.
        Raises InvalidData if the mapping does.
        """
        from party_sdk.tables import Dialect, How
        from party_sdk.tables.mapping import parse_mapping

        mapping = None
        if self.mapping is not None:
            mapping = parse_mapping(self.mapping.encode(), "mapping")
        how = How(
            id_column=self.id_column,
            columns=self.columns or None,
            dialect=Dialect.parse(self.csv),
            mapping=mapping,
        )
        return NamedTable(path=self.path, how=how)


class Order(_StoredModel):
    """What a party is to do in the background.

    invitation: a secret; ``repr`` does not show it.
    table: none as long as nobody has named one: nothing runs then.
    choices: what this party decides alone, as ``--choice``.
    ids_per_row: the guard of that name; None for what the policy says.
    labels: where labels (memberships stand beside them) are to be written; absolute.
        Without it the result stays in the home.
    confirm, readable: whether each kind of contribution is a question before it leaves,
        or each that somebody can read.
    notify: addresses that the analyst is to tell, as ``--notify``.
    withdrawn: the reason, once it is withdrawn; empty for none given.
    """

    invitation: str = Field(repr=False)
    table: OrderedTable | None = None
    choices: dict[str, Any] = {}
    ids_per_row: float | None = Field(default=None, ge=0)
    labels: Path | None = None
    confirm: bool = False
    readable: bool = False
    notify: tuple[str, ...] = Field(default=(), repr=False)
    withdrawn: str | None = None
    table_digest: str | None = Field(
        default=None, description="SHA-256 of the file when the order was placed."
    )

    def apply_to(self, policy: Policy) -> Policy:
        """Return a policy with what this order says instead."""
        if self.ids_per_row is None:
            return policy
        return replace(policy, ids_per_row=self.ids_per_row)


class OrderState(StrEnum):
    """Where an order stands."""

    QUEUED = "queued"
    WAITING = "waiting-for-you"
    RUNNING = "running"
    COMPLETED = SessionState.COMPLETED.value
    FAILED = SessionState.FAILED.value
    DECLINED = SlotState.DECLINED.value


_ENDED: Final = frozenset(
    {OrderState.COMPLETED, OrderState.FAILED, OrderState.DECLINED}
)


class End(IntEnum):
    """How the process of an order ends."""

    OVER = 0
    AWAITS_A_PERSON = 10
    TRY_AGAIN = 75
    STOPPED = 130


class Trouble(_StoredModel):
    """What went wrong: a headline, what it was, and what to do."""

    headline: str
    detail: str
    remedy: str

    @classmethod
    def of(cls, error: CoterieError) -> Trouble:
        """Return an error in the words of the closed list."""
        return cls(
            headline=error.problem.title, detail=error.detail, remedy=error.remedy
        )


class OrderStatus(_StoredModel):
    """Where an order stands, for anyone who looks.

    stage, stage_number, n_stages: what the session is at; stages count from 1.
    round, n_rounds: rounds count from 1 through all stages. ``n_rounds`` is the largest
        number of updates where the protocol says it, and ``updates`` how many are done.
    awaited, awaited_since: slots, or ``the analyst``, for whom the session waits.
    moved: by how much the last update moved the result, if the protocol tells.
    pace: which of several runs continues, and the time left, in words.
    outage_since: since when the analyst cannot be reached.
    trouble: why it failed, was declined, or is tried again.
    question: the id of the question that waits for a person.
    restarts: how often its process died and was started again.
    """

    session: str
    slot: str
    title: str = ""
    protocol: str = ""
    state: OrderState = OrderState.QUEUED
    stage: str | None = None
    stage_number: int | None = None
    n_stages: int | None = None
    round: int | None = None
    updates: int | None = None
    n_rounds: int | None = None
    awaited: tuple[str, ...] = ()
    awaited_since: AwareDatetime | None = None
    moved: float | None = None
    pace: str = ""
    outage_since: AwareDatetime | None = None
    trouble: Trouble | None = None
    question: str | None = None
    restarts: int = 0
    placed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    changed_at: AwareDatetime
    ended_at: AwareDatetime | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is done unless it is placed again."""
        return self.state in _ENDED

    @property
    def began_at(self) -> datetime | None:
        """Return when it began, as it was placed last; None before."""
        if self.started_at is None or self.state is OrderState.QUEUED:
            return None
        return max(self.started_at, self.placed_at)


class QuestionKind(StrEnum):
    """What a person has to decide."""

    RISKS = "risks"
    SAFETY_NUMBER = "safety-number"
    MAPPING = "mapping"  # another one than the session is kept with
    AGREEING = "agreeing"  # signatures, keys and keyed digests, once for all
    CONTRIBUTION = "contribution"
    CHOICE = "choice"  # a contribution that the protocol asks about


class PendingQuestion(_StoredModel):
    """What a person has to decide; answered once, by yes or no.

    id: follows from what is asked: the same question after a restart has the same id.
    sentence: what is asked, in a sentence or two.
    risks: code and sentence of each risk that is to be accepted.
    safety_number, members: what is to be compared with the other members.
    contribution: what would be sent: arrays with name, shape, dtype, range and bytes, and
        envelopes. The ranges are the party's own: they belong on its operator's screen
        alone.
    """

    id: str
    kind: QuestionKind
    sentence: str
    risks: dict[str, str] = {}
    safety_number: str = ""
    members: tuple[Seat, ...] = ()
    contribution: Inspection | None = None
    asked_at: AwareDatetime


class Decision(_StoredModel):
    """What a person decided, when, and why.

    rest: whether a yes is to the rest of the kind too.
    """

    question: str
    kind: QuestionKind
    yes: bool
    rest: bool = False
    reason: str = ""
    at: AwareDatetime


class _Decisions(_StoredModel):
    """All answers of an order, the oldest first."""

    given: tuple[Decision, ...] = ()


class StaleOrder(Exception):
    """The order was withdrawn or placed anew since it was taken: others speak for it."""


class OrderFiles:
    """Reads and writes what is kept of the order of one party.

    Anyone who acts on an order, for as long as that takes, takes it first: from then on
    nothing is told of it once it is another one.
    """

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.folder = PartySession(home, session, slot)
        self.home, self.session, self.slot = home, session, slot
        self._is_alone = False
        self._taken: tuple[datetime, str | None] | None = None

    @property
    def exists(self) -> bool:
        """Return whether the party has an order."""
        return self._path("order").exists()

    def order(self) -> Order:
        """Return the order; :class:`NotReady` if there is none."""
        order = self._read(Order, "order")
        if order is None:
            raise NotReady(f"There is no order for {self.session} {self.slot}.")
        return order

    def save_order(self, order: Order) -> None:
        """Write an order."""
        self._write("order", order)

    def take(self) -> Order:
        """Return the order, to act on it as it is placed now."""
        with self.alone():
            order = self.order()
            self._taken = (self.status().placed_at, order.withdrawn)
        return order

    def check(self) -> None:
        """Raise :class:`StaleOrder` if the order is no longer the one that was taken."""
        if self._taken is None:
            return
        withdrawn = self.order().withdrawn
        if self._taken != (self.status().placed_at, withdrawn):
            raise StaleOrder

    def status(self) -> OrderStatus:
        """Return where the order stands."""
        at = now()
        fresh = OrderStatus(
            session=self.session, slot=self.slot, placed_at=at, changed_at=at
        )
        return self._read(OrderStatus, "status") or fresh

    def tell(self, **changes: Any) -> OrderStatus:
        """Change where the order stands, and return it; nothing is written for no news.

        Raises StaleOrder if another order was taken than there is now.
        """
        with self.alone():
            self.check()
            before = self.status()
            after = before.model_copy(update=changes)
            if after != before or not self._path("status").exists():
                after = after.model_copy(update={"changed_at": now()})
                self._write("status", after)
            return after

    def question(self) -> PendingQuestion | None:
        """Return what a person has to decide, if anything."""
        return self._read(PendingQuestion, "question")

    def save_question(self, question: PendingQuestion) -> None:
        """Write a question."""
        self._write("question", question)

    def clear_question(self) -> None:
        """Remove the question: it was answered, or is not asked any more."""
        self._path("question").unlink(missing_ok=True)

    def decisions(self) -> tuple[Decision, ...]:
        """Return all answers so far, the oldest first."""
        stored = self._read(_Decisions, "answers")
        return () if stored is None else stored.given

    def save_decisions(self, decisions: tuple[Decision, ...]) -> None:
        """Write all answers."""
        self._write("answers", _Decisions(given=decisions))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time change what is kept; within it, as often as needed."""
        if self._is_alone:
            yield
            return
        with wait_for_lock(self._folder / "order.lock"):
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    @property
    def moved_at(self) -> int:
        """Return when order or status were written last (ns), to see whether it is news."""
        return max(_written_at(self._path("order")), _written_at(self._path("status")))

    def _read(self, model: type[_M], name: str) -> _M | None:
        try:
            return model.model_validate_json(read_private(self._path(name)))
        except FileNotFoundError:
            return None
        except ValidationError:
            raise NotReady(f"{name}.json was written by another release.") from None

    def _write(self, name: str, content: BaseModel) -> None:
        private_folder(self._folder)
        write_private(self._path(name), content.model_dump_json().encode())

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    @property
    def _folder(self) -> Path:
        return self.home / "orders" / self.session / self.slot


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def orders_in(home: Path) -> Iterator[OrderFiles]:
    """Yield the orders of a home, by session and slot."""
    for path in sorted((home / "orders").glob("*/*/order.json")):
        yield OrderFiles(home, path.parent.parent.name, path.parent.name)


class Orders:
    """The orders of a home.

    home: the folder that holds the parties.
    """

    def __init__(self, home: Path) -> None:
        self.home = home

    def place(self, order: Order) -> OrderStatus:
        """Store an order, to be run by the supervisor; return where it stands.

        An order that failed, was declined or waits is placed anew: what was answered
        with yes stands, a no is asked again. A party that left before its slot was taken
        comes back by that.

        Raises InvalidParameters if the invitation is none, or a file of the table is
            not there.
        Raises GuardRefused if there is an order with another invitation.
        Raises NotReady if an order is under way, or completed.
        """
        invitation = Invitation.parse(order.invitation)
        files = OrderFiles(self.home, invitation.session, invitation.slot)
        order = order.model_copy(update={"invitation": str(invitation)})
        if order.table is not None:
            update = {"table_digest": digest_of(order.table.path)}
            order = order.model_copy(update=update)
        with files.alone():
            if files.exists:
                check_same_invitation(files, invitation)
                state = files.status().state
                if state in {OrderState.RUNNING, OrderState.COMPLETED}:
                    raise NotReady(f"This order is {state.value}.")
            come_back(files.folder)
            files.save_order(order)
            files.save_decisions(tuple(d for d in files.decisions() if d.yes))
            files.clear_question()
            at = now()
            fresh = {"trouble": None, "question": None, "ended_at": None, "restarts": 0}
            return files.tell(state=OrderState.QUEUED, placed_at=at, **fresh)

    def all(self) -> Iterator[OrderStatus]:
        """Yield where each order stands, by session and slot."""
        for files in orders_in(self.home):
            yield files.status()

    def status(self, session: str, slot: str) -> OrderStatus:
        """Return where an order stands; :class:`NotReady` if there is none."""
        return self._files(session, slot).status()

    def question(self, session: str, slot: str) -> PendingQuestion | None:
        """Return what a person has to decide, or None if nothing."""
        return self._files(session, slot).question()

    def answer(
        self,
        session: str,
        slot: str,
        question_id: str,
        yes: bool,  # noqa: FBT001  the desk passes what a form said
        reason: str = "",
        *,
        rest: bool = False,
    ) -> OrderStatus:
        """Decide; a no stands, and ends the order.

        rest: whether a yes is to the rest of the kind of contribution too.

        A no before the slot is taken is for the others to read, with the reason.

        Raises NotReady if this is not what is asked now.
        """
        files = self._files(session, slot)
        with files.alone():
            asked = files.question()
            if asked is None or asked.id != question_id:
                raise NotReady("This question is not open: it was answered already.")
            decision = Decision(
                question=asked.id,
                kind=asked.kind,
                yes=yes,
                rest=yes and rest,
                reason=reason,
                at=now(),
            )
            files.save_decisions((*files.decisions(), decision))
            files.clear_question()
            # a no is executed by the order's own process: it tells the others
            return files.tell(state=OrderState.QUEUED, question=None)

    def withdraw(self, session: str, slot: str, reason: str = "") -> OrderStatus:
        """End an order for good: decline a slot that is free, leave one that is taken.

        Nothing more is sent, whether the others can be told or not. Where its process is
        at work, the supervisor stops it first.

        Raises NotReady if it is completed.
        Raises CoterieError if the analyst cannot be told; the order is withdrawn all
            the same.
        """
        files = self._files(session, slot)
        with files.alone():
            if files.status().state is OrderState.COMPLETED:
                raise NotReady("This session is completed: nothing more is sent.")
            order = files.order().model_copy(update={"withdrawn": reason})
            files.save_order(order)
            files.clear_question()
            files.tell(question=None)
            order = files.take()
        if is_free(files.folder):
            execute_withdrawal(files, order)
        return files.status()

    def _files(self, session: str, slot: str) -> OrderFiles:
        files = OrderFiles(self.home, session, slot)
        if not files.exists:
            raise NotReady(f"There is no order for {session} {slot}.")
        return files


def check_same_invitation(files: OrderFiles, invitation: Invitation) -> None:
    """Raise GuardRefused if an order has an invitation with another session secret."""
    if Invitation.parse(files.order().invitation).secret != invitation.secret:
        raise GuardRefused(
            "There is an order with another invitation of this session and slot."
        )


def is_free(folder: PartySession) -> bool:
    """Return whether no process runs this party."""
    return folder.is_free


def execute_withdrawal(files: OrderFiles, order: Order) -> None:
    """Stop the party for good, and tell the others where the slot is free."""
    reason = order.withdrawn or ""
    detail = f"You withdrew this order{f': {reason}' if reason else ''}."
    trouble = Trouble(
        headline="Withdrawn", detail=detail, remedy="Nothing: nothing more is sent."
    )
    try:
        home = Home(path=files.home, patience=_PATIENCE)
        home.withdraw(order.invitation, reason)
    finally:  # killed before this, it is withdrawn again
        with files.alone(), suppress(StaleOrder):  # placed anew meanwhile
            if files.status().state is not OrderState.COMPLETED:
                files.tell(
                    state=OrderState.DECLINED,
                    question=None,
                    ended_at=now(),
                    trouble=trouble,
                )


def digest_of(path: str) -> str:
    """Return the SHA-256 of a table's file.

    Raises InvalidParameters if the file cannot be read.
    """
    digest = sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        raise InvalidParameters(f"{Path(path).name!r} cannot be read.") from None
    return digest.hexdigest()


def all_parties(home: Path) -> Iterator[KeptParty]:
    """Yield each party by session and slot; of an order, where that stands."""
    parties = {(party.session, party.slot): party for party in kept_parties(home)}
    for files in orders_in(home):
        key = (files.session, files.slot)
        party = parties.get(key)
        try:
            status = files.status()
        except CoterieError:
            unread = KeptParty(
                session=files.session,
                slot=files.slot,
                title="",
                state="cannot be read",
                following="set COTERIE_PASSPHRASE_FILE, or use the release that wrote it",
            )
            parties[key] = party or unread
            continue
        state = _describe(status)
        if party and party.state in OVER and status.state is OrderState.FAILED:
            parties[key] = replace(party, state=state)
            continue
        is_done = status.state is OrderState.COMPLETED
        report = f"coterie party report {files.session} {files.slot}"
        parties[key] = KeptParty(
            session=files.session,
            slot=files.slot,
            title=status.title if party is None else party.title,
            state=state,
            following=report if is_done else "coterie ui",
        )
    for key in sorted(parties):
        yield parties[key]


def _describe(status: OrderStatus) -> str:
    place = f", round {status.round}" if status.round and not status.is_over else ""
    out = ", the analyst cannot be reached" if status.outage_since else ""
    why = f": {status.trouble.headline}" if status.trouble else ""
    return f"{status.state.value}{place}{out}{why}"
