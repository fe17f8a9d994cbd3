"""Orders: what they say, and how they are placed, answered and withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import IntEnum, StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.wire.states import SessionState, SlotState
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.home import Home
from party_sdk.home.clock import now
from party_sdk.home.policy import Policy
from party_sdk.home.store import store_of
from party_sdk.party.leave import come_back
from party_sdk.party.party_session import PartySession

_PATIENCE: Final = 10.0  # seconds: somebody waits for the end of an order


class _StoredModel(BaseModel):
    """A value that the home stores as JSON."""

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

    def to_spec(self) -> TableSpec:
        """Return the table, to be opened.

        Raises InvalidParameters if ``csv`` holds what is not known.
        Raises InvalidData if the mapping does.
        """
        from party_sdk.tables import Dialect, ReadOptions
        from party_sdk.tables.mapping import parse_mapping

        mapping = None
        if self.mapping is not None:
            mapping = parse_mapping(self.mapping.encode(), "mapping")
        options = ReadOptions(
            id_column=self.id_column,
            columns=self.columns or None,
            dialect=Dialect.parse(self.csv),
            mapping=mapping,
        )
        return TableSpec(path=self.path, options=options)


class Order(_StoredModel):
    """What a party is to do in the background.

    invitation: a secret; ``repr`` does not show it.
    table: none as long as nobody has named one: nothing runs then.
    choices: what this party decides alone, as ``--choice``.
    ids_per_row: the guard of that name; None for what the policy says.
    labels: where labels (memberships stand beside them) are to be written; absolute.
        Without it the result stays in the home.
    notify: addresses that the analyst is to tell, as ``--notify``.
    withdrawn: the reason, once it is withdrawn; empty for none given.
    """

    invitation: str = Field(repr=False)
    table: OrderedTable | None = None
    choices: dict[str, Any] = {}
    ids_per_row: float | None = Field(default=None, ge=0)
    labels: Path | None = None
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

    SAFETY_NUMBER = "safety-number"
    MAPPING = "mapping"  # another one than the session is kept with
    CONTRIBUTION = "contribution"  # the next one after consent was withdrawn
    CHOICE = "choice"  # a contribution that the protocol asks about


class PendingQuestion(_StoredModel):
    """What a person has to decide; answered once, by yes or no.

    id: follows from what is asked: the same question after a restart has the same id.
    sentence: what is asked, in a sentence or two.
    safety_number, members: what is to be compared with the other members.
    contribution: what would be sent: arrays with name, shape, dtype, range and bytes, and
        envelopes. The ranges are the party's own: they belong on its operator's screen
        alone.
    """

    id: str
    kind: QuestionKind
    sentence: str
    safety_number: str = ""
    members: tuple[Seat, ...] = ()
    contribution: Inspection | None = None
    asked_at: AwareDatetime


class Decision(_StoredModel):
    """What a person decided, when, and why."""

    question: str
    kind: QuestionKind
    yes: bool
    reason: str = ""
    at: AwareDatetime


class StaleOrder(Exception):
    """The order was withdrawn or placed anew since it was taken: others speak for it."""


class PartyOrder:
    """The order of one party, as its home stores it.

    Anyone who acts on an order, for as long as that takes, takes it first: from then on
    nothing is told of it once it is another one.
    """

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.stored = PartySession(home, session, slot)
        self.home, self.session, self.slot = home, session, slot
        self.store = self.stored.store
        self._taken: tuple[datetime, str | None] | None = None

    @property
    def exists(self) -> bool:
        """Return whether the party has an order."""
        return self._get("content") is not None

    def order(self) -> Order:
        """Return the order; :class:`NotReady` if there is none."""
        stored = self._get("content")
        if stored is None:
            raise NotReady(f"There is no order for {self.session} {self.slot}.")
        return Order.model_validate_json(stored)

    def save_order(self, order: Order) -> None:
        """Store an order."""
        at = now()
        fresh = OrderStatus(
            session=self.session, slot=self.slot, placed_at=at, changed_at=at
        )
        with self.store.transaction() as database:
            database.execute(
                "INSERT INTO orders (party, content, status) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET content = excluded.content, "
                "version = version + 1",
                (
                    self.stored.id_in(database),
                    order.model_dump_json(),
                    fresh.model_dump_json(),
                ),
            )

    def take(self) -> Order:
        """Return the order, to act on it as it is placed now."""
        with self.store.transaction():
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
        """Return where the order stands; :class:`NotReady` if there is none."""
        self.order()
        return OrderStatus.model_validate_json(self._get("status"))

    def tell(self, **changes: Any) -> OrderStatus:
        """Change where the order stands, and return it; nothing is written for no news.

        Raises StaleOrder if another order was taken than there is now.
        """
        # a status that a power cut takes is told again by the next process
        with self.store.transaction(durable=False) as database:
            self.check()
            before = self.status()
            after = before.model_copy(update=changes)
            if after != before:
                after = after.model_copy(update={"changed_at": now()})
                database.execute(
                    "UPDATE orders SET status = ?, version = version + 1 "
                    "WHERE party = ?",
                    (after.model_dump_json(), self.stored.id),
                )
            return after

    def question(self) -> PendingQuestion | None:
        """Return what a person has to decide, if anything."""
        stored = self._get("question")
        return None if stored is None else PendingQuestion.model_validate_json(stored)

    def save_question(self, question: PendingQuestion | None) -> None:
        """Store a question; None if it was answered, or is not asked any more."""
        with self.store.transaction() as database:
            database.execute(
                "UPDATE orders SET question = ? WHERE party = ?",
                (question and question.model_dump_json(), self.stored.id),
            )

    def decisions(self) -> tuple[Decision, ...]:
        """Return all answers so far, the oldest first."""
        found = self.store.rows(
            "SELECT content FROM decisions WHERE party = ? ORDER BY rowid",
            self.stored.id,
        )
        return tuple(Decision.model_validate_json(content) for [content] in found)

    def add_decision(self, decision: Decision) -> None:
        """Store an answer."""
        with self.store.transaction() as database:
            database.execute(
                "INSERT INTO decisions VALUES (?, ?)",
                (self.stored.id_in(database), decision.model_dump_json()),
            )

    def answer(self, question_id: str, *, yes: bool, reason: str = "") -> OrderStatus:
        """Decide; a no stands, and ends the order.

        A no before the slot is taken is for the others to read, with the reason.

        Raises NotReady if this is not what is asked now.
        """
        with self.store.transaction():
            asked = self.question()
            if asked is None or asked.id != question_id:
                raise NotReady("This question is not open: it was answered already.")
            decision = Decision(
                question=asked.id,
                kind=asked.kind,
                yes=yes,
                reason=reason,
                at=now(),
            )
            self.add_decision(decision)
            self.save_question(None)
            # a no is executed by the order's own process: it tells the others
            return self.tell(state=OrderState.QUEUED, question=None)

    def withdraw(self, reason: str = "") -> OrderStatus:
        """End an order for good: decline a slot that is free, leave one that is taken.

        Nothing more is sent, whether the others can be told or not. Where its process is
        at work, the supervisor stops it first.

        Raises NotReady if it is completed.
        Raises CoterieError if the analyst cannot be told; the order is withdrawn all
            the same.
        """
        with self.store.transaction():
            if self.status().state is OrderState.COMPLETED:
                raise NotReady("This session is completed: nothing more is sent.")
            order = self.order().model_copy(update={"withdrawn": reason})
            self.save_order(order)
            self.save_question(None)
            self.tell(question=None)
            order = self.take()
        if self.stored.is_free:
            execute_withdrawal(self, order)
        return self.status()

    def drop_refusals(self) -> None:
        """Erase answers that said no: they are asked again."""
        with self.store.transaction() as database:
            database.execute(
                "DELETE FROM decisions WHERE party = ? AND NOT content ->> '$.yes'",
                (self.stored.id,),
            )

    def _get(self, column: str) -> Any:
        found = self.store.row(
            f"SELECT {column} FROM orders WHERE party = ?",  # noqa: S608  our names
            self.stored.id,
        )
        return found and found[0]


def orders_in(home: Path) -> Iterator[PartyOrder]:
    """Yield the orders of a home, by session and slot."""
    yield from (PartyOrder(home, *key) for key in order_versions(home))


def order_versions(home: Path) -> dict[tuple[str, str], int]:
    """Return how often each order or its status was written, by session and slot."""
    found = store_of(home).rows(
        "SELECT session, slot, version FROM orders JOIN parties ON id = party "
        "ORDER BY session, slot"
    )
    return {(session, slot): version for session, slot, version in found}


def place_order(home: Path, order: Order) -> OrderStatus:
    """Store an order of a home, to be run by the supervisor; return where it stands.

    An order that failed, was declined or waits is placed anew: what was answered with yes
    stands, a no is asked again. A party that left before its slot was taken comes back by
    that.

    Raises InvalidParameters if the invitation is none, or a file of the table is not
        there.
    Raises GuardRefused if there is an order with another invitation.
    Raises NotReady if an order is under way, or completed.
    """
    invitation = Invitation.parse(order.invitation)
    files = PartyOrder(home, invitation.session, invitation.slot)
    order = order.model_copy(update={"invitation": str(invitation)})
    if order.table is not None:
        update = {"table_digest": digest_of(order.table.path)}
        order = order.model_copy(update=update)
    with files.store.transaction():
        if files.exists:
            check_same_invitation(files, invitation)
            state = files.status().state
            if state in {OrderState.RUNNING, OrderState.COMPLETED}:
                raise NotReady(f"This order is {state.value}.")
        come_back(files.stored)
        files.save_order(order)
        files.drop_refusals()
        files.save_question(None)
        at = now()
        fresh = {"trouble": None, "question": None, "ended_at": None, "restarts": 0}
        return files.tell(state=OrderState.QUEUED, placed_at=at, **fresh)


def check_same_invitation(files: PartyOrder, invitation: Invitation) -> None:
    """Raise GuardRefused if an order has an invitation with another session secret."""
    if Invitation.parse(files.order().invitation).secret != invitation.secret:
        raise GuardRefused(
            "There is an order with another invitation of this session and slot."
        )


def execute_withdrawal(files: PartyOrder, order: Order) -> None:
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
        with files.store.transaction(), suppress(StaleOrder):  # placed anew meanwhile
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
