"""Orders that run parties in the background: stored, placed, answered and withdrawn."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import IntEnum, StrEnum
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final, Self

from pydantic import AwareDatetime, BaseModel, Field

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
from party_sdk.party.leave import allow_rejoining
from party_sdk.party.party_session import PartySession
from party_sdk.tables import Dialect, ReadOptions
from party_sdk.tables.mapping import parse_mapping

_PATIENCE: Final = 10.0  # seconds; short, because a person may be waiting


class OrderedTable(BaseModel, frozen=True):
    """A table and the options to read it, named as the options of ``party run``.

    path: the absolute path of the file.
    id_column, columns: as in ``--id-column`` and ``--columns``; if no columns are
        named, all columns except the ids are used.
    csv: as in ``--csv``: strings such as ``delimiter=;``.
    mapping: the content of a ``--mapping`` file, or None for the stored mapping. The
        mapping is omitted from ``repr`` because its levels are values of cells.
    """

    path: str
    id_column: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    mapping: str | None = Field(default=None, repr=False)

    def to_spec(self) -> TableSpec:
        """Return a specification from which the table can be opened.

        Raises InvalidParameters if ``csv`` is invalid.
        Raises InvalidData if the mapping is invalid.
        """
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


class Order(BaseModel, frozen=True):
    """An order to run one party in the background.

    invitation: a secret, which is omitted from ``repr``.
    table: None until the operator names a table; the party does not run before that.
    choices: the party's own decisions, as in ``--choice``.
    ids_per_row: replaces the limit of the same name in the policy, unless it is None.
    labels: absolute path of the label file, in which memberships are further columns. If
        None, the result is stored only in the home.
    notify: e-mail addresses for notifications, as in ``--notify``.
    withdrawn: the reason, which may be empty, or None if the order is not withdrawn.
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
        """Return the policy with this order's ``ids_per_row``, if the order sets it."""
        if self.ids_per_row is None:
            return policy
        return replace(policy, ids_per_row=self.ids_per_row)


class OrderState(StrEnum):
    """The state of an order."""

    QUEUED = "queued"
    WAITING = "waiting-for-you"
    RUNNING = "running"
    COMPLETED = SessionState.COMPLETED.value
    FAILED = SessionState.FAILED.value
    DECLINED = SlotState.DECLINED.value


_FINAL_STATES: Final = frozenset(
    {OrderState.COMPLETED, OrderState.FAILED, OrderState.DECLINED}
)


class ExitCode(IntEnum):
    """The exit codes of an order's process."""

    OVER = 0
    AWAITS_A_PERSON = 10
    TRY_AGAIN = 75
    STOPPED = 130


class Trouble(BaseModel, frozen=True):
    """A description of a failure, and its remedy."""

    headline: str
    detail: str
    remedy: str

    @classmethod
    def from_error(cls, error: CoterieError) -> Trouble:
        """Describe an error by its title, detail and remedy."""
        return cls(
            headline=error.problem.title, detail=error.detail, remedy=error.remedy
        )

    @classmethod
    def from_unexpected(cls, location: str) -> Self:
        """Describe an unexpected error by its location; its text may contain cells."""
        return cls(
            headline="Something unexpected happened here",
            detail=f"{location}.",
            remedy="Run it at a terminal (coterie party run) and report what it says.",
        )


class OrderStatus(BaseModel, frozen=True):
    """The status of an order; it contains no secret, row, id or cell.

    stage, stage_number, n_stages: the session's current stage; stages count from 1.
    round: the current round; rounds count from 1 through all stages.
    updates, n_rounds: how many updates are done in this stage, and their maximum.
    awaited, awaited_since: the slots, or ``the analyst``, that the session waits for.
    moved: how much the last update changed the result, if the protocol reports it.
    pace: the current run, if there are several, and the remaining time, in words.
    outage_since: when the analyst became unreachable; None while it can be reached.
    trouble: why the order failed, was declined, or will be retried.
    restarts: how often the order's process died and was restarted.
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
    restarts: int = 0
    placed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    changed_at: AwareDatetime
    ended_at: AwareDatetime | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the order has ended; it is reopened only if it is placed again."""
        return self.state in _FINAL_STATES

    @property
    def began_at(self) -> datetime | None:
        """Return when the order last began to run, or None if it is queued or never ran."""
        if self.started_at is None or self.state is OrderState.QUEUED:
            return None
        return max(self.started_at, self.placed_at)


class QuestionKind(StrEnum):
    """The subject of a question to the operator."""

    SAFETY_NUMBER = "safety-number"
    MAPPING = "mapping"  # a new mapping differs from the stored one
    CONTRIBUTION = "contribution"  # the first one after consent was withdrawn
    CHOICE = "choice"  # the protocol asks, or an answer was refused before


class PendingQuestion(BaseModel, frozen=True):
    """A question that a person answers once, with yes or no.

    id: a digest of the question, so that the id stays the same after a restart.
    sentence: the text of the question.
    safety_number, members: the safety number to compare, and the other members.
    contribution: what would be sent: its envelopes, and the name, shape, dtype, value
        range and bytes of each array. Only the operator may see the value ranges.
    """

    id: str
    kind: QuestionKind
    sentence: str
    safety_number: str = ""
    members: tuple[Seat, ...] = ()
    contribution: Inspection | None = None
    asked_at: AwareDatetime


class Decision(BaseModel, frozen=True):
    """A person's answer to a question."""

    question: str
    kind: QuestionKind
    yes: bool
    reason: str = ""
    at: AwareDatetime


class StaleOrder(Exception):
    """Raised if an order was withdrawn or placed again after a process took it."""


class PartyOrder:
    """The stored order of one party.

    A process calls :meth:`take` before it acts on an order. If the order is then
    withdrawn or placed again, the process can no longer change its status.
    """

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.stored = PartySession(home, session, slot)
        self.home, self.session, self.slot = home, session, slot
        self.store = self.stored.store
        self._taken: tuple[datetime, str | None] | None = None

    @property
    def exists(self) -> bool:
        """Return whether an order is stored for the party."""
        return self._fetch_column("content") is not None

    def order(self) -> Order:
        """Return the stored order; raise :class:`NotReady` if there is none."""
        return Order.model_validate_json(self._require_column("content"))

    def save_order(self, order: Order) -> None:
        """Store the order in place of any earlier one; an existing status is kept."""
        placed_at = now()
        status = OrderStatus(
            session=self.session,
            slot=self.slot,
            placed_at=placed_at,
            changed_at=placed_at,
        )
        with self.store.transaction() as database:
            database.execute(
                "INSERT INTO orders (party, content, status) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET content = excluded.content, "
                "version = version + 1",
                (
                    self.stored.id_in(database),
                    order.model_dump_json(),
                    status.model_dump_json(),
                ),
            )

    def take(self) -> Order:
        """Return the order, and remember its state for a later :meth:`check_not_stale`."""
        with self.store.transaction():
            order = self.order()
            self._taken = (self.status().placed_at, order.withdrawn)
        return order

    def check_not_stale(self) -> None:
        """Raise :class:`StaleOrder` if the order has changed since it was taken."""
        if self._taken is None:
            return
        withdrawn = self.order().withdrawn
        if self._taken != (self.status().placed_at, withdrawn):
            raise StaleOrder

    def status(self) -> OrderStatus:
        """Return the status of the order; raise :class:`NotReady` if there is no order."""
        return OrderStatus.model_validate_json(self._require_column("status"))

    def update_status(self, **changes: Any) -> OrderStatus:
        """Apply changes to the order's status and return it; store it if it differs.

        Raises StaleOrder if the order was withdrawn or replaced since it was taken.
        """
        # not durable: if the update is lost, the next process repeats it
        with self.store.transaction(durable=False) as database:
            self.check_not_stale()
            old = self.status()
            new = old.model_copy(update=changes)
            if new != old:
                new = new.model_copy(update={"changed_at": now()})
                database.execute(
                    "UPDATE orders SET status = ?, version = version + 1 "
                    "WHERE party = ?",
                    (new.model_dump_json(), self.stored.id),
                )
            return new

    def question(self) -> PendingQuestion | None:
        """Return the pending question, or None if there is none."""
        stored = self._fetch_column("question")
        return None if stored is None else PendingQuestion.model_validate_json(stored)

    def save_question(self, question: PendingQuestion | None) -> None:
        """Store the pending question, or delete it if ``question`` is None."""
        with self.store.transaction() as database:
            database.execute(
                "UPDATE orders SET question = ? WHERE party = ?",
                (question and question.model_dump_json(), self.stored.id),
            )

    def decisions(self) -> tuple[Decision, ...]:
        """Return all decisions about this order so far, the oldest first."""
        rows = self.store.fetch_rows(
            "SELECT content FROM decisions WHERE party = ? ORDER BY rowid",
            self.stored.id,
        )
        return tuple(Decision.model_validate_json(content) for [content] in rows)

    def answer(self, question_id: str, *, yes: bool, reason: str = "") -> OrderStatus:
        """Record the answer to the pending question, and queue the order again.

        While the slot is free, the other members can read the reason for a no.

        Raises NotReady if this question is not pending.
        """
        with self.store.transaction() as database:
            question = self.question()
            if question is None or question.id != question_id:
                raise NotReady("This question is not open: it was answered already.")
            decision = Decision(
                question=question.id,
                kind=question.kind,
                yes=yes,
                reason=reason,
                at=now(),
            )
            database.execute(
                "INSERT INTO decisions VALUES (?, ?)",
                (self.stored.id, decision.model_dump_json()),
            )
            self.save_question(None)
            # after a no, the order's process ends the order and notifies the others
            return self.update_status(state=OrderState.QUEUED)

    def withdraw(self, reason: str = "") -> OrderStatus:
        """Withdraw the order, and decline its slot or leave its session.

        Nothing more is sent, even if the other members cannot be notified. If a process
        runs the party, the supervisor executes the withdrawal after its end; it stops
        the order's own process first.

        Raises NotReady if the session is completed.
        Raises CoterieError if the analyst cannot be notified; the withdrawal stands.
        """
        with self.store.transaction():
            if self.status().state is OrderState.COMPLETED:
                raise NotReady("This session is completed: nothing more is sent.")
            order = self.order().model_copy(update={"withdrawn": reason})
            self.save_order(order)
            self.save_question(None)
            is_free = self.stored.is_free
            if not is_free:  # also if it failed or waits, or nobody would execute it
                self.update_status(state=OrderState.QUEUED, trouble=None, ended_at=None)
            order = self.take()
        if is_free:
            execute_withdrawal(self, order)
        return self.status()

    def _require_column(self, column: str) -> Any:
        stored = self._fetch_column(column)
        if stored is None:
            raise NotReady(f"There is no order for {self.session} {self.slot}.")
        return stored

    def _fetch_column(self, column: str) -> Any:
        row = self.store.fetch_row(
            f"SELECT {column} FROM orders WHERE party = ?",  # noqa: S608  constants
            self.stored.id,
        )
        return row and row[0]


def order_versions(home: Path) -> dict[tuple[str, str], int]:
    """Return each order's version, which grows with every change, by session and slot."""
    rows = store_of(home).fetch_rows(
        "SELECT session, slot, version FROM orders JOIN parties ON id = party "
        "ORDER BY session, slot"
    )
    return {(session, slot): version for session, slot, version in rows}


def place_order(home: Path, order: Order) -> OrderStatus:
    """Store an order for the supervisor to run, and return its status.

    An order may be placed again unless it is running or completed; questions that were
    answered with no are asked again. A party that left before it took its slot may
    rejoin.

    Raises InvalidParameters if the invitation is invalid, or the table's file is
        missing.
    Raises GuardRefused if there is an order with another invitation.
    Raises NotReady if the order is running or completed.
    """
    invitation = Invitation.parse(order.invitation)
    party_order = PartyOrder(home, invitation.session, invitation.slot)
    order = order.model_copy(update={"invitation": str(invitation)})
    if order.table is not None:
        update = {"table_digest": hash_table_file(order.table.path)}
        order = order.model_copy(update=update)
    with party_order.store.transaction() as database:
        if party_order.exists:
            check_same_invitation(party_order, invitation)
            state = party_order.status().state
            if state in {OrderState.RUNNING, OrderState.COMPLETED}:
                raise NotReady(f"This order is {state.value}.")
        allow_rejoining(party_order.stored)
        party_order.save_order(order)
        database.execute(
            "DELETE FROM decisions WHERE party = ? AND NOT content ->> '$.yes'",
            (party_order.stored.id,),
        )
        party_order.save_question(None)
        placed_at = now()
        reset = {"trouble": None, "ended_at": None, "restarts": 0}
        return party_order.update_status(
            state=OrderState.QUEUED, placed_at=placed_at, **reset
        )


def check_same_invitation(party_order: PartyOrder, invitation: Invitation) -> None:
    """Raise GuardRefused if the order's invitation has a different session secret."""
    if Invitation.parse(party_order.order().invitation).secret != invitation.secret:
        raise GuardRefused(
            "There is an order with another invitation of this session and slot."
        )


def execute_withdrawal(party_order: PartyOrder, order: Order) -> None:
    """Leave the session or decline the slot, and mark the order as declined."""
    reason = order.withdrawn or ""
    detail = f"You withdrew this order{f': {reason}' if reason else ''}."
    trouble = Trouble(
        headline="Withdrawn", detail=detail, remedy="Nothing: nothing more is sent."
    )
    try:
        home = Home(path=party_order.home, patience=_PATIENCE)
        home.withdraw(order.invitation, reason)
    finally:  # if killed before this, the next process tries again
        with party_order.store.transaction(), suppress(StaleOrder):  # placed again
            if party_order.status().state is not OrderState.COMPLETED:
                party_order.update_status(
                    state=OrderState.DECLINED,
                    ended_at=now(),
                    trouble=trouble,
                )


def hash_table_file(path: str) -> str:
    """Return the SHA-256 digest of a table's file, in hexadecimal.

    Raises InvalidParameters if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        raise InvalidParameters(f"{Path(path).name!r} cannot be read.") from None
