"""One order, run to its end, to a question, or to what has to be tried again."""

from __future__ import annotations

from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    Internal,
    QuotaReached,
    StorageFull,
    Unavailable,
)
from clustering_protocols.terms.terms import Terms
from party_sdk.analyst_client.transport import Listeners
from party_sdk.application.asker import Asks
from party_sdk.application.home import Home
from party_sdk.application.outputs import Outputs
from party_sdk.home.clock import now
from party_sdk.home.disk_room import is_full, no_room
from party_sdk.home.identities import Acquaintances
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy
from party_sdk.party.notifications import not_named
from party_sdk.results.output_files import try_outputs
from party_sdk.supervisor.files import OrderFiles, Overtaken
from party_sdk.supervisor.models import (
    Order,
    OrderedTable,
    OrderState,
    QuestionKind,
    Trouble,
)
from party_sdk.supervisor.orders import carry_out, digest_of, is_free
from party_sdk.supervisor.pending_questions import (
    DecisionDeclined,
    DecisionPending,
    OrderAsker,
)
from party_sdk.supervisor.rules import read_rules
from party_sdk.supervisor.status import OrderWatch, trouble_of

_TO_BE_TRIED_AGAIN = (Unavailable, StorageFull, QuotaReached, Internal)


class End(IntEnum):
    """How the process of an order ends."""

    OVER = 0
    AWAITS_A_PERSON = 10
    TRY_AGAIN = 75
    STOPPED = 130


def _asks_of(order: Order) -> Asks:
    if order.confirm:
        return Asks.EVERYTHING
    return Asks.READABLE if order.readable else Asks.NOTHING


class OrderRunner:
    """One order of a home."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self._home = home
        self._files = OrderFiles(home, session, slot)
        self._order = self._files.order()
        self._asking = OrderAsker(self._files)
        self._telling = OrderWatch(self._files)

    def run(self) -> End:
        """Run the order as far as it goes, and say so in its status."""
        if not is_free(self._files.folder):
            return End.TRY_AGAIN  # a process that is about to end, or `party run`
        try:
            return self._as_far_as_it_goes()
        except Overtaken:
            return End.STOPPED

    def _as_far_as_it_goes(self) -> End:
        try:
            if self._is_withdrawn():
                carry_out(self._files, self._order)
            else:
                self._begin()
        except DecisionPending:
            return End.AWAITS_A_PERSON
        except DecisionDeclined as no:
            self._decline(no)
        except _TO_BE_TRIED_AGAIN as error:
            self._files.tell(state=OrderState.QUEUED, trouble=trouble_of(error))
            return End.TRY_AGAIN
        except OSError as error:
            if not is_full(error):
                raise
            place = Path(error.filename).parent if error.filename else None
            full = trouble_of(no_room(place, "Labels or a report were to be written."))
            self._files.tell(state=OrderState.QUEUED, trouble=full)
            return End.TRY_AGAIN
        except CoterieError as error:
            self._end(OrderState.FAILED, trouble_of(error))
        return End.OVER

    def note_stop(self) -> End:
        """Say that the process was stopped: the order continues when it is started."""
        with self._files.alone(), suppress(Overtaken):
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
        except Overtaken:
            return End.STOPPED
        return End.OVER

    def _is_withdrawn(self) -> bool:
        """Take the order, and say that it runs, unless it is withdrawn.

        It may have been placed anew since this process began.
        """
        with self._files.alone():
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
            listeners=Listeners(on_outage=self._telling.outage),
            asker=self._asking,
        )

    def _begin(self) -> None:
        here, policy = self._own_home, self._order.apply_to(read_policy(self._home))
        offer = here.offer(self._order.invitation, policy)
        self._files.tell(title=offer.terms.title, protocol=offer.terms.protocol.name)
        table = self._table(offer.terms)
        policy = here.accept(self._order.invitation, policy, offer)
        try:
            self._run(table, policy)
        except GuardRefused:
            if self._asking.refused is not None:
                raise DecisionDeclined(self._asking.refused) from None
            raise

    def _table(self, terms: Terms) -> OrderedTable:
        """Return the table: that of the order, or of the first rule that covers it."""
        if self._order.table is None:
            self._order = self._by_rule(terms)
            with self._files.alone():
                self._files.check()
                self._files.save_order(self._order)
        table = self._order.table
        if table is None:
            raise GuardRefused("No table is named.")
        if self._order.table_digest != digest_of(table.path):
            raise GuardRefused(
                f"{Path(table.path).name!r} has changed since the order was placed. "
                "Place the order again if it is this table that is meant."
            )
        return table

    def _by_rule(self, terms: Terms) -> Order:
        known = Acquaintances(self._home).read()
        slot = self._files.slot
        for rule in read_rules(self._home):
            if rule.covers(terms, slot, known):
                order = rule.apply_to(self._order, self._home, terms.session, slot)
                path = "" if order.table is None else order.table.path
                return order.model_copy(update={"table_digest": digest_of(path)})
        sentence = (
            "No rule in policy.toml names a table for this invitation: place the order "
            "with a table, or answer no."
        )
        if not self._asking.ask(QuestionKind.TABLE, terms.session, sentence):
            raise DecisionDeclined(self._files.answers().given[-1])
        return self._order

    def _run(self, table: OrderedTable, policy: Policy) -> None:
        order, here = self._order, self._own_home
        outputs = Outputs(labels=order.labels, report=order.report, force=order.force)
        self._try(outputs, table)
        with here.join(
            order.invitation, policy, order.choices, asks=_asks_of(order)
        ) as member:
            # a withdrawal that found no party here comes before this
            self._files.check()
            if addresses := not_named(member.folder, order.notify):
                member.notify(addresses)
            rows, telling = table.to_named_table(), self._telling.progress
            here.run(member, rows, outputs, on_progress=telling)
        self._files.take()  # a withdrawal that comes now finds it completed
        self._end(OrderState.COMPLETED, None)

    def _try(self, outputs: Outputs, table: OrderedTable) -> None:
        """Refuse what cannot be written before anything is sent."""
        for path in outputs.paths:
            if path is not None:
                with suppress(OSError):  # said in the next line
                    path.parent.mkdir(parents=True, exist_ok=True)
        try_outputs(outputs.paths, Path(table.path), force=outputs.force)
        outputs.check(self._files.folder.path)

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
        if not self._files.folder.has_joined:
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
