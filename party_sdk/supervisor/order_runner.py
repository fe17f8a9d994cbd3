"""The process that runs one order until it ends, needs an answer, or must be retried.

    python -m party_sdk.supervisor.order_runner HOME SESSION SLOT

The process exits if its parent process dies, which closes the pipe at standard input;
the next supervisor starts the order again. Before the process exits to wait for an
answer, it stores the question. The next process reaches the same question and finds the
answer.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    Internal,
    QuotaReached,
    StorageFull,
    Unavailable,
)
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.wire.answers import SessionStatus, describe_pace, updates_done
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.transport import Listeners
from party_sdk.application.home import Home
from party_sdk.application.outputs import Outputs
from party_sdk.home.clock import now
from party_sdk.home.disk_room import report_full_disk
from party_sdk.home.own_packages import use_home
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.home.process_exit import error_location, run_without_finalisation
from party_sdk.party.asker import Asker
from party_sdk.party.notifications import missing_addresses
from party_sdk.party.participant import Offer
from party_sdk.party.roster import Roster
from party_sdk.party.stored_mappings import MappingChange
from party_sdk.results.output_files import check_outputs
from party_sdk.supervisor.orders import (
    Decision,
    ExitCode,
    OrderedTable,
    OrderState,
    PartyOrder,
    PendingQuestion,
    QuestionKind,
    StaleOrder,
    Trouble,
    execute_withdrawal,
    hash_table_file,
)

_RETRYABLE: Final = (Unavailable, StorageFull, QuotaReached, Internal)


_SENTENCES: Final = {
    QuestionKind.SAFETY_NUMBER: "You know too few of the other members by their cards. "
    "Did each of these members read you this safety number?",
    QuestionKind.CONTRIBUTION: "You withdrew your consent. May this contribution be sent, "
    "and everything else that the sheet lists?",
    QuestionKind.CHOICE: "May it be sent?",
}


class DecisionPending(Exception):
    """Raised if the party cannot continue until a person answers the stored question."""


class DecisionDeclined(Exception):
    """Raised if a person answered a question with no."""

    def __init__(self, answer: Decision) -> None:
        super().__init__(answer.kind.value)
        self.answer = answer


@dataclass
class OrderAsker(Asker):
    """Asks by storing a question with the order, for a person to answer later."""

    party_order: PartyOrder
    refusal: Decision | None = field(default=None, init=False)

    def ask(
        self, kind: QuestionKind, subject: str, sentence: str = "", **details: Any
    ) -> bool:
        """Return the stored answer to a question; if there is none, store the question.

        subject: distinguishes this question from other questions of the same kind.

        Raises DecisionPending if the question has not been answered yet.
        Raises StaleOrder if the order was replaced; the question is then not stored.
        """
        number = sha256(length_prefixed(kind.value, subject)).hexdigest()[:16]
        answer = next(
            (
                decision
                for decision in self.party_order.decisions()
                if decision.question == number
            ),
            None,
        )
        if answer is not None:
            self.refusal = None if answer.yes else answer
            return answer.yes
        with self.party_order.store.transaction():
            self.party_order.check_not_stale()
            question = PendingQuestion(
                id=number,
                kind=kind,
                sentence=sentence or _SENTENCES[kind],
                asked_at=now(),
                **details,
            )
            self.party_order.save_question(question)
            self.party_order.update_status(state=OrderState.WAITING)
        raise DecisionPending

    def confirm_members(self, roster: Roster, *, is_known: bool) -> bool:
        """Ask whether all members read out the same safety number, unless ``is_known``."""
        if is_known:
            return False
        number, seats = roster.safety_number, roster.seats
        return self.ask(
            QuestionKind.SAFETY_NUMBER, number, safety_number=number, members=seats
        )

    def confirm_mapping(self, change: MappingChange) -> bool:
        """Ask whether a new mapping of the table should replace the stored one."""
        sentence = f"{change.sentence} Should the new mapping be used?"
        return self.ask(QuestionKind.MAPPING, change.digest, sentence)

    def approve(self, inspection: Inspection) -> bool:
        """Ask whether a contribution may be sent; the question includes its content."""
        consent = self.party_order.stored.consent
        withdrawn_at = consent and consent.withdrawn_at
        kind = QuestionKind.CONTRIBUTION if withdrawn_at else QuestionKind.CHOICE
        sentence = f"{inspection.asks} {_SENTENCES[kind]}".strip()
        subject = (
            f"{inspection.stage} {inspection.round} {inspection.attempt} "
            f"{inspection.digest} {withdrawn_at}"
        )
        return self.ask(kind, subject, sentence, contribution=inspection)


def _describe_awaited(status: SessionStatus) -> str:
    if status.state is SessionState.CHOOSING:
        return "the coordinator, to choose a number of clusters"
    return "the analyst"


class OrderRunner:
    """Runs one order of a home in this process."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self._home = home
        self._party_order = PartyOrder(home, session, slot)
        self._order = self._party_order.order()
        self._asker = OrderAsker(self._party_order)

    def run(self) -> ExitCode:
        """Run the order as far as possible, update its status, and return the exit code."""
        if not self._party_order.stored.is_free:
            return ExitCode.TRY_AGAIN  # another process still runs this party
        try:
            return self._advance()
        except StaleOrder:
            return ExitCode.STOPPED

    def _advance(self) -> ExitCode:
        try:
            with report_full_disk(None, "Labels or a report were to be written."):
                if self._take_order():
                    self._prepare_and_run()
                else:
                    execute_withdrawal(self._party_order, self._order)
        except DecisionPending:
            return ExitCode.AWAITS_A_PERSON
        except DecisionDeclined as declined:
            self._decline(declined)
        except _RETRYABLE as error:
            self._party_order.update_status(
                state=OrderState.QUEUED, trouble=Trouble.from_error(error)
            )
            return ExitCode.TRY_AGAIN
        except CoterieError as error:
            self._record_end(OrderState.FAILED, Trouble.from_error(error))
        return ExitCode.OVER

    def record_stop(self) -> ExitCode:
        """Queue the order again, so that the next process continues it."""
        with self._party_order.store.transaction(), suppress(StaleOrder):
            if not self._party_order.status().is_over:
                self._party_order.update_status(state=OrderState.QUEUED)
        return ExitCode.STOPPED

    def record_failure(self, location: str) -> ExitCode:
        """Mark the order as failed, with the location of an unexpected error."""
        trouble = Trouble.from_unexpected(location)
        try:
            with suppress(CoterieError, OSError):  # the stored status may be damaged
                self._record_end(OrderState.FAILED, trouble)
        except StaleOrder:
            return ExitCode.STOPPED
        return ExitCode.OVER

    def _take_order(self) -> bool:
        """Reload the order and mark it as running; return False if it was withdrawn."""
        with self._party_order.store.transaction():
            self._order = self._party_order.take()
            if self._order.withdrawn is not None:
                return False
            started_at = self._party_order.status().started_at or now()
            self._party_order.update_status(
                state=OrderState.RUNNING,
                started_at=started_at,
                awaited=(),
                trouble=None,
            )
        return True

    @property
    def _own_home(self) -> Home:
        return Home(
            path=self._home,
            listeners=Listeners(on_outage=self._write_outage),
            asker=self._asker,
        )

    def _write_progress(self, status: SessionStatus) -> None:
        is_in_stage = status.round > 0 and status.state is not SessionState.CHOOSING
        n_done, n_max = updates_done(status)
        moved = status.progress.get("moved") or [None]
        self._party_order.update_status(
            title=status.title,
            protocol=status.protocol,
            stage=status.stage if status.round else status.state.value,
            stage_number=status.stage_index + 1 if is_in_stage else None,
            n_stages=status.n_stages or None,
            round=status.round or None,
            updates=n_done or None,
            n_rounds=n_max or None,
            awaited=()
            if status.is_over
            else tuple(status.awaited_slots) or (_describe_awaited(status),),
            awaited_since=None if status.is_over else status.waiting_since,
            moved=moved[-1],
            pace=describe_pace(status),
            outage_since=None,
        )

    def _write_outage(self, outage: str) -> None:
        since = self._party_order.status().outage_since or now()
        self._party_order.update_status(outage_since=since if outage else None)

    def _prepare_and_run(self) -> None:
        home, policy = self._own_home, self._order.apply_to(read_policy(self._home))
        offer = home.fetch_offer(self._order.invitation, policy)
        self._party_order.update_status(
            title=offer.terms.title, protocol=offer.terms.protocol.name
        )
        table = self._load_unchanged_table()
        policy = home.ask_consent(self._order.invitation, policy, offer)
        try:
            self._join_and_run(table, policy, offer)
        except GuardRefused:
            if self._asker.refusal is not None:
                raise DecisionDeclined(self._asker.refusal) from None
            raise

    def _load_unchanged_table(self) -> OrderedTable:
        table = self._order.table
        if table is None:
            raise GuardRefused("No table is named.")
        if self._order.table_digest != hash_table_file(table.path):
            raise GuardRefused(
                f"{Path(table.path).name!r} has changed since the order was placed. "
                "Place the order again if you mean this table."
            )
        return table

    def _join_and_run(self, table: OrderedTable, policy: Policy, offer: Offer) -> None:
        order, home = self._order, self._own_home
        outputs = Outputs(labels=order.labels)
        for path in outputs.paths:
            if path is not None:
                with suppress(OSError):  # check_outputs reports it
                    path.parent.mkdir(parents=True, exist_ok=True)
        check_outputs(outputs.paths, Path(table.path), force=outputs.force)
        outputs.check_overwriting(self._party_order.stored)
        with home.join(order.invitation, policy, order.choices, offer) as member:
            # the order may have been withdrawn before the party was stored
            self._party_order.check_not_stale()
            if addresses := missing_addresses(member.stored, order.notify):
                member.request_notifications(addresses)
            rows = table.to_spec()
            home.run(member, rows, outputs, on_progress=self._write_progress)
        self._party_order.take()  # completed even if it was just withdrawn
        self._record_end(OrderState.COMPLETED, None)

    def _decline(self, declined: DecisionDeclined) -> None:
        """Mark the order as declined and, if the slot is free, decline the invitation."""
        reason = declined.answer.reason
        detail = "You said no" + (f": {reason}" if reason else "") + "."
        self._record_end(
            OrderState.DECLINED,
            Trouble(
                headline="Declined",
                detail=detail,
                remedy="Place the order again to be asked again.",
            ),
        )
        if not self._party_order.stored.has_joined:
            self._own_home.decline_invitation(self._order.invitation, reason)

    def _record_end(self, state: OrderState, trouble: Trouble | None) -> None:
        self._party_order.update_status(
            state=state,
            trouble=trouble,
            ended_at=now(),
            awaited=(),
            awaited_since=None,
            outage_since=None,
        )


def main(home: str, session: str, slot: str) -> int:
    """Run an order and return the exit code of the process."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _stop)
    order = None
    use_home(Path(home))
    try:
        order = OrderRunner(Path(home), session, slot)
        return order.run()
    except KeyboardInterrupt:
        return ExitCode.STOPPED if order is None else order.record_stop()
    except CoterieError as error:  # the status could not be written
        print(f"{session} {slot}: {error}", file=sys.stderr)  # noqa: T201  its log
        return ExitCode.TRY_AGAIN
    except Exception as error:  # noqa: BLE001  its text may contain values of cells
        location = error_location(error)
        print(f"{session} {slot}: {location}", file=sys.stderr)  # noqa: T201  its log
        return ExitCode.TRY_AGAIN if order is None else order.record_failure(location)


def _exit_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a lock would block the exit
    os._exit(1)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(number, signal.SIG_IGN)  # a second one would interrupt the cleanup
    raise KeyboardInterrupt


if __name__ == "__main__":
    run_without_finalisation(lambda: sys.exit(main(*sys.argv[1:])))
