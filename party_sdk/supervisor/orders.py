"""Placing, reading, answering and withdrawing orders; nothing is started here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from clustering_protocols.common.errors import GuardRefused, InvalidParameters, NotReady
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.home import Home
from party_sdk.home.clock import now
from party_sdk.party.folder import PartyFolder
from party_sdk.party.leave import come_back
from party_sdk.supervisor.files import OrderFiles, Overtaken, orders_in
from party_sdk.supervisor.models import (
    Decision,
    Decisions,
    Order,
    OrderState,
    OrderStatus,
    PendingQuestion,
    QuestionKind,
    Trouble,
)

_PATIENCE = 10.0  # seconds: somebody waits for the end of an order


class Orders:
    """The orders of a home.

    home: the folder that holds the parties; sealed, a passphrase has to be at hand
        (``COTERIE_PASSPHRASE_FILE``), or each call raises :class:`NotReady`.
    """

    def __init__(self, home: Path) -> None:
        self.home = home

    def place(self, order: Order) -> OrderStatus:
        """Keep an order, to be run by the supervisor; return where it stands.

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
                self._check_replaceable(files, order)
            come_back(files.folder)
            files.save_order(order)
            files.save_answers(files.answers().but_noes())
            files.unask()
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

        Raises NotReady if this is not what is asked now: it was answered, or is asked
            no more.
        Raises InvalidParameters if a yes does not answer it: the order wants a table.
        """
        files = self._files(session, slot)
        with files.alone():
            asked = files.question()
            if asked is None or asked.id != question_id:
                raise NotReady("This question is not open: it was answered already.")
            if yes and asked.kind is QuestionKind.TABLE:
                raise InvalidParameters(
                    "Name the table: place the order again with one (party order "
                    f"{session} {slot} --data FILE)."
                )
            answer = Decision(
                question=asked.id,
                kind=asked.kind,
                yes=yes,
                rest=yes and rest,
                reason=reason,
                at=now(),
            )
            given = (*files.answers().given, answer)
            files.save_answers(Decisions(given=given))
            files.unask()
            # the no is carried out by the order's own process: it tells the others
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
            files.unask()
            files.tell(question=None)
            order = files.take()
        if is_free(files.folder):
            carry_out(files, order)
        return files.status()

    def _files(self, session: str, slot: str) -> OrderFiles:
        files = OrderFiles(self.home, session, slot)
        if not files.exists:
            raise NotReady(f"There is no order for {session} {slot}.")
        return files

    def _check_replaceable(self, files: OrderFiles, order: Order) -> None:
        kept, status = files.order(), files.status()
        if Invitation.parse(kept.invitation).secret != (
            Invitation.parse(order.invitation).secret
        ):
            raise GuardRefused(
                "There is an order with another invitation of this session and slot."
            )
        if status.state is OrderState.RUNNING and kept.table is None:
            return  # nothing has begun: its process is overtaken
        if status.state in {OrderState.RUNNING, OrderState.COMPLETED}:
            raise NotReady(f"This order is {status.state.value}.")


def is_free(folder: PartyFolder) -> bool:
    """Return whether no process runs this party."""
    try:
        with folder.lock():
            return True
    except NotReady:
        return False


def carry_out(files: OrderFiles, order: Order) -> None:
    """Withdraw: stop the party for good, and tell the others where the slot is free."""
    reason = order.withdrawn or ""
    detail = f"You withdrew this order{f': {reason}' if reason else ''}."
    trouble = Trouble(
        headline="Withdrawn", detail=detail, remedy="Nothing: nothing more is sent."
    )
    try:
        here = Home(path=files.home, patience=_PATIENCE)
        here.withdraw(order.invitation, reason)
    finally:  # killed before this, it is withdrawn again
        with files.alone(), suppress(Overtaken):  # placed anew meanwhile
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
