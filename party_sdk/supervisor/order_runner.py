"""The process of one order: it runs to its end, to a question, or to what is tried again.

    python -m party_sdk.supervisor.order_runner HOME SESSION SLOT

It ends at once when the process that started it is gone: the pipe at standard input is
closed then, and the next supervisor starts it again. A question is stored, and the
process ends: once it is answered, the next process comes to the same question.
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
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
from party_sdk.home.disk_room import is_full, no_room
from party_sdk.home.own_packages import use_home
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.home.process_exit import place_of, run_to_the_end
from party_sdk.party.asker import Asker
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.notifications import not_named
from party_sdk.party.roster import Roster
from party_sdk.results.output_files import try_outputs
from party_sdk.supervisor.orders import (
    Decision,
    End,
    OrderedTable,
    OrderState,
    PartyOrder,
    PendingQuestion,
    QuestionKind,
    StaleOrder,
    Trouble,
    digest_of,
    execute_withdrawal,
)

if TYPE_CHECKING:
    pass

_TO_BE_TRIED_AGAIN: Final = (Unavailable, StorageFull, QuotaReached, Internal)


_SENTENCES: Final = {
    QuestionKind.SAFETY_NUMBER: "You know too few of the other members by their cards. "
    "Did each of these members read you this safety number?",
    QuestionKind.CONTRIBUTION: "You took your consent back. May this contribution leave, "
    "and all else that the sheet lists?",
}


class DecisionPending(Exception):
    """A person has to decide before this party continues; the question is kept."""


class DecisionDeclined(Exception):
    """A person has said no; ``answer`` holds when and why."""

    def __init__(self, answer: Decision) -> None:
        super().__init__(answer.kind.value)
        self.answer = answer


@dataclass
class OrderAsker(Asker):
    """Asks by a question that is stored with an order, which somebody answers later."""

    files: PartyOrder
    refused: Decision | None = field(default=None, init=False)

    def ask(
        self, kind: QuestionKind, about: str, sentence: str = "", **shown: Any
    ) -> bool:
        """Return what was answered; keep the question and raise if nothing was.

        about: what tells this question from another of its kind.

        Raises DecisionPending.
        Raises StaleOrder if there is another order meanwhile: nothing is asked for this
            one.
        """
        number = sha256(length_prefixed(kind.value, about)).hexdigest()[:16]
        answer = next(
            (each for each in self.files.decisions() if each.question == number), None
        )
        if answer is not None:
            self.refused = None if answer.yes else answer
            return answer.yes
        with self.files.store.transaction():
            self.files.check()
            question = PendingQuestion(
                id=number,
                kind=kind,
                sentence=sentence or _SENTENCES[kind],
                asked_at=now(),
                **shown,
            )
            self.files.save_question(question)
            self.files.tell(state=OrderState.WAITING, question=number)
        raise DecisionPending

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Ask whether the others read the same safety number, where that is needed."""
        if is_known:
            return False
        number, seats = roster.safety_number, roster.seats
        return self.ask(
            QuestionKind.SAFETY_NUMBER, number, safety_number=number, members=seats
        )

    def change_mapping(self, change: MappingChange) -> bool:
        """Ask whether another mapping of the table counts than the one that is kept."""
        sentence = f"{change.sentence} Is the table to be read by the new mapping?"
        return self.ask(QuestionKind.MAPPING, change.digest, sentence)

    def let_go(self, found: Inspection) -> bool:
        """Ask whether a contribution may leave; all of it stands in the question."""
        kind = QuestionKind.CHOICE if found.asks else QuestionKind.CONTRIBUTION
        sentence = f"{found.asks} May it leave?" if found.asks else ""
        about = f"{found.stage} {found.round} {found.attempt} {found.digest}"
        if not found.asks:
            about += f" {self.files.stored.consents.withdrawn_at}"
        return self.ask(kind, about, sentence, contribution=found)


def _whom(status: SessionStatus) -> str:
    """Return for whom a session waits that waits for no party."""
    if status.state is SessionState.CHOOSING:
        return "the coordinator, to choose a number of clusters"
    return "the analyst"


class _OrderWatch:
    """Tells by the status of an order how the session goes."""

    def __init__(self, files: PartyOrder) -> None:
        self._files = files

    def progress(self, status: SessionStatus) -> None:
        """Tell that the session has moved."""
        is_in_stage = status.round > 0 and status.state is not SessionState.CHOOSING
        done, most = updates_done(status)
        moved = status.progress.get("moved") or [None]
        self._files.tell(
            title=status.title,
            protocol=status.protocol,
            stage=status.stage if status.round else status.state.value,
            stage_number=status.stage_index + 1 if is_in_stage else None,
            n_stages=status.n_stages or None,
            round=status.round or None,
            updates=done or None,
            n_rounds=most or None,
            awaited=()
            if status.is_over
            else tuple(status.awaited_slots) or (_whom(status),),
            awaited_since=None if status.is_over else status.waiting_since,
            moved=moved[-1],
            pace=describe_pace(status),
            outage_since=None,
        )

    def outage(self, outage: str) -> None:
        """Tell since when the analyst cannot be reached or is full; empty: it is well."""
        since = self._files.status().outage_since or now()
        self._files.tell(outage_since=since if outage else None)


class OrderRunner:
    """One order of a home."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self._home = home
        self._files = PartyOrder(home, session, slot)
        self._order = self._files.order()
        self._asking = OrderAsker(self._files)
        self._watch = _OrderWatch(self._files)

    def run(self) -> End:
        """Run the order as far as it goes, and say so in its status."""
        if not self._files.stored.is_free:
            return End.TRY_AGAIN  # a process that is about to end, or `party run`
        try:
            return self._as_far_as_it_goes()
        except StaleOrder:
            return End.STOPPED

    def _as_far_as_it_goes(self) -> End:
        try:
            if self._is_withdrawn():
                execute_withdrawal(self._files, self._order)
            else:
                self._begin()
        except DecisionPending:
            return End.AWAITS_A_PERSON
        except DecisionDeclined as no:
            self._decline(no)
        except _TO_BE_TRIED_AGAIN as error:
            self._files.tell(state=OrderState.QUEUED, trouble=Trouble.of(error))
            return End.TRY_AGAIN
        except OSError as error:
            if not is_full(error):
                raise
            place = Path(error.filename).parent if error.filename else None
            full = Trouble.of(no_room(place, "Labels or a report were to be written."))
            self._files.tell(state=OrderState.QUEUED, trouble=full)
            return End.TRY_AGAIN
        except CoterieError as error:
            self._end(OrderState.FAILED, Trouble.of(error))
        return End.OVER

    def note_stop(self) -> End:
        """Say that the process was stopped: the order continues when it is started."""
        with self._files.store.transaction(), suppress(StaleOrder):
            if not self._files.status().is_over:
                self._files.tell(state=OrderState.QUEUED)
        return End.STOPPED

    def note_failure(self, place: str) -> End:
        """Say that the order ended by an unexpected error, and where that came from."""
        trouble = Trouble(
            headline="Something unexpected happened here",
            detail=f"{place}.",
            remedy="Run it at a terminal (coterie party run) and report what it says.",
        )
        try:
            with suppress(CoterieError, OSError):  # its files may be what is broken
                self._end(OrderState.FAILED, trouble)
        except StaleOrder:
            return End.STOPPED
        return End.OVER

    def _is_withdrawn(self) -> bool:
        """Take the order, and say that it runs, unless it is withdrawn.

        It may have been placed anew since this process began.
        """
        with self._files.store.transaction():
            self._order = self._files.take()
            if self._order.withdrawn is not None:
                return True
            started = self._files.status().started_at or now()
            self._files.tell(
                state=OrderState.RUNNING,
                started_at=started,
                awaited=(),
                trouble=None,
                question=None,
            )
        return False

    @property
    def _own_home(self) -> Home:
        """Return the home, as this order reaches the analyst and asks people."""
        return Home(
            path=self._home,
            listeners=Listeners(on_outage=self._watch.outage),
            asker=self._asking,
        )

    def _begin(self) -> None:
        here, policy = self._own_home, self._order.apply_to(read_policy(self._home))
        offer = here.offer(self._order.invitation, policy)
        self._files.tell(title=offer.terms.title, protocol=offer.terms.protocol.name)
        table = self._table()
        policy = here.accept(self._order.invitation, policy, offer)
        try:
            self._run(table, policy)
        except GuardRefused:
            if self._asking.refused is not None:
                raise DecisionDeclined(self._asking.refused) from None
            raise

    def _table(self) -> OrderedTable:
        """Return the table of the order, if it is as it was when that was placed."""
        table = self._order.table
        if table is None:
            raise GuardRefused("No table is named.")
        if self._order.table_digest != digest_of(table.path):
            raise GuardRefused(
                f"{Path(table.path).name!r} has changed since the order was placed. "
                "Place the order again if it is this table that is meant."
            )
        return table

    def _run(self, table: OrderedTable, policy: Policy) -> None:
        order, here = self._order, self._own_home
        outputs = Outputs(labels=order.labels)
        self._try(outputs, table)
        with here.join(order.invitation, policy, order.choices) as member:
            # a withdrawal that found no party here comes before this
            self._files.check()
            if addresses := not_named(member.stored, order.notify):
                member.notify(addresses)
            rows = table.to_spec()
            here.run(member, rows, outputs, on_progress=self._watch.progress)
        self._files.take()  # a withdrawal that comes now finds it completed
        self._end(OrderState.COMPLETED, None)

    def _try(self, outputs: Outputs, table: OrderedTable) -> None:
        """Refuse what cannot be written before anything is sent."""
        for path in outputs.paths:
            if path is not None:
                with suppress(OSError):  # said in the next line
                    path.parent.mkdir(parents=True, exist_ok=True)
        try_outputs(outputs.paths, Path(table.path), force=outputs.force)
        outputs.check(self._files.stored)

    def _decline(self, no: DecisionDeclined) -> None:
        """End after a no; the others read it where the slot is free."""
        reason = no.answer.reason
        told = "You said no" + (f": {reason}" if reason else "") + "."
        self._end(
            OrderState.DECLINED,
            Trouble(
                headline="Declined",
                detail=told,
                remedy="Place the order again to be asked again.",
            ),
        )
        if not self._files.stored.has_joined:
            self._own_home.decline(self._order.invitation, reason)

    def _end(self, state: OrderState, trouble: Trouble | None) -> None:
        self._files.tell(
            state=state,
            trouble=trouble,
            ended_at=now(),
            awaited=(),
            awaited_since=None,
            outage_since=None,
            question=None,
        )


def main(home: str, session: str, slot: str) -> int:
    """Run an order; return the exit code."""
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    signal.signal(signal.SIGTERM, _stop)
    order = None
    use_home(Path(home))
    try:
        order = OrderRunner(Path(home), session, slot)
        return order.run()
    except KeyboardInterrupt:
        return End.STOPPED if order is None else order.note_stop()
    except CoterieError as error:  # the status could not be written
        print(f"{session} {slot}: {error}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN
    except Exception as error:  # noqa: BLE001  its text may hold values of cells
        place = place_of(error)
        print(f"{session} {slot}: {place}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN if order is None else order.note_failure(place)


def _end_with_the_other() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer: it would be locked when this one ends
    os._exit(1)  # nobody is left to whom it could say why


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(number, signal.SIG_IGN)  # once: a second would stop the stopping
    raise KeyboardInterrupt


if __name__ == "__main__":
    run_to_the_end(lambda: sys.exit(main(*sys.argv[1:])))
