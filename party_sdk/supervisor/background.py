"""One order, run to its end, to a question, or to what has to be tried again."""

from __future__ import annotations

import errno
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from clustering_protocols.errors import (
    CoterieError,
    GuardRefused,
    Internal,
    QuotaReached,
    StorageFull,
    Unavailable,
)
from clustering_protocols.terms import Terms, read_terms
from clustering_protocols.wire.states import SlotState
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient
from party_sdk.identities import Acquaintances
from party_sdk.invitations import Invitation
from party_sdk.joining import signed_terms
from party_sdk.outputs import keep_others, remembered, try_outputs, write_whole
from party_sdk.participant import Party
from party_sdk.policy import Policy
from party_sdk.policy_files import read_policy
from party_sdk.supervisor.asking import Asking, Awaited, Declined
from party_sdk.supervisor.clock import now
from party_sdk.supervisor.files import OrderFiles, Overtaken
from party_sdk.supervisor.models import (
    Order,
    OrderedTable,
    OrderState,
    QuestionKind,
    Trouble,
)
from party_sdk.supervisor.orders import carry_out, digest_of, is_free
from party_sdk.supervisor.rules import read_rules
from party_sdk.supervisor.telling import Telling, trouble_of
from party_sdk.told import not_named

_TO_BE_TRIED_AGAIN = (Unavailable, StorageFull, QuotaReached, Internal)


class End(IntEnum):
    """How the process of an order ends."""

    OVER = 0
    AWAITS_A_PERSON = 10
    TRY_AGAIN = 75
    STOPPED = 130


class Background:
    """One order of a home."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self._home = home
        self._files = OrderFiles(home, session, slot)
        self._order = self._files.order()
        self._invitation = Invitation.parse(self._order.invitation)
        self._asking = Asking(self._files, self._order.confirm)
        self._telling = Telling(self._files)

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
        except Awaited:
            return End.AWAITS_A_PERSON
        except Declined as no:
            self._decline(no)
        except _TO_BE_TRIED_AGAIN as error:
            self._files.tell(state=OrderState.QUEUED, trouble=trouble_of(error))
            return End.TRY_AGAIN
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            full = trouble_of(StorageFull("There is no room for labels or report."))
            self._files.tell(state=OrderState.QUEUED, trouble=full)
            return End.TRY_AGAIN
        except CoterieError as error:
            self._end(OrderState.FAILED, trouble_of(error))
        return End.OVER

    def stopped(self) -> End:
        """Say that the process was stopped: the order goes on when it is started."""
        with self._files.alone(), suppress(Overtaken):
            if not self._files.status().is_over:
                self._files.tell(state=OrderState.QUEUED)
        return End.STOPPED

    def failed(self, place: str) -> End:
        """Say that the order ended by an unexpected error, and where that came from."""
        trouble = Trouble(
            headline="Something unexpected happened here",
            detail=f"{place}.",
            remedy="Run it at a terminal (coterie party resume) and report what it says.",
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
            self._invitation = Invitation.parse(self._order.invitation)
            self._asking.confirm = self._order.confirm
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

    def _begin(self) -> None:
        with self._transport() as transport:
            terms = self._terms(transport)
            self._files.tell(title=terms.title, protocol=terms.protocol.name)
            table = self._table(terms)
            policy = self._policy(terms)
            try:
                self._run(table, policy, transport)
            except GuardRefused:
                if self._asking.refused is not None:
                    raise Declined(self._asking.refused) from None
                raise

    def _terms(self, transport: Transport) -> Terms:
        """Return the terms, as kept here once they were accepted."""
        folder = self._files.folder
        if folder.exists:
            return read_terms(folder.load_identity().terms.encode())
        invited = self._invitation
        known = Acquaintances(self._home).read()
        read_policy(self._home).check_inviter(invited.url, invited.coordinator, known)
        preview = AnalystClient(transport).preview(invited.code)
        return signed_terms(self._invitation, preview)

    def _table(self, terms: Terms) -> OrderedTable:
        """Return the table: that of the order, or of the first rule that covers it."""
        if self._order.table is None:
            self._order = self._by_rule(terms)
            self._asking.confirm = self._order.confirm
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
        slot = self._invitation.slot
        for rule in read_rules(self._home):
            if rule.covers(terms, slot, known):
                order = rule.applied(self._order, self._home, terms.session, slot)
                path = "" if order.table is None else order.table.path
                return order.model_copy(update={"table_digest": digest_of(path)})
        sentence = (
            "No rule in policy.toml names a table for this invitation: place the order "
            "with a table, or answer no."
        )
        if not self._asking.ask(QuestionKind.TABLE, terms.session, sentence):
            raise Declined(self._files.answers().given[-1])
        return self._order

    def _policy(self, terms: Terms) -> Policy:
        """Return the home's policy, with every risk of the terms accepted by a person."""
        policy, folder = read_policy(self._home), self._files.folder
        if folder.exists:
            return policy.accepting(folder.load_identity().accepted_risks)
        left = policy.not_accepted(terms)
        everything = policy.accepting(left)
        everything.check_terms(terms)
        if left:
            self._asking.risks(left, self._invitation.terms)
        return everything

    def _run(self, table: OrderedTable, policy: Policy, transport: Transport) -> None:
        order = self._order
        outputs = [order.labels, order.report]
        self._try(outputs, table)
        member = Party.join(
            order.invitation,
            policy=policy,
            home=self._home,
            transport=transport,
            choices=order.choices,
            confirm=self._asking.let_go,
            on_roster=self._asking.meet,
        )
        self._files.check()  # a withdrawal that found no party here comes before this
        if addresses := not_named(member.folder, order.notify):
            member.notify(addresses)
        with member.arriving():
            data = table.named().open(member.agreed)
        result = member.run(data, on_progress=self._telling.progress)
        with remembered(outputs, self._files.folder.path):
            if order.labels is not None:
                result.save(order.labels)
            if order.report is not None:
                self._write_report(member, order.report)
        self._files.take()  # a withdrawal that comes now finds it completed
        self._end(OrderState.COMPLETED, None)

    def _try(self, outputs: list[Path | None], table: OrderedTable) -> None:
        """Refuse what cannot be written before anything is sent."""
        force = self._order.force
        for path in outputs:
            if path is not None:
                with suppress(OSError):  # said in the next line
                    path.parent.mkdir(parents=True, exist_ok=True)
        try_outputs(outputs, Path(table.path), force=force)
        keep_others(outputs, self._files.folder.path, force=force)

    def _write_report(self, member: Party, path: Path) -> None:
        from coterie_pages.pages import page
        from party_sdk.run_reports import run_report

        write_whole(page(run_report(member, self._home)).encode(), path)

    def _decline(self, no: Declined) -> None:
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
            with self._transport() as transport:
                client = AnalystClient(transport)
                client.decline(self._invitation.code, SlotState.DECLINED, reason)

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

    def _transport(self) -> Transport:
        order = self._order
        return Transport(
            self._invitation.url,
            ca_file=order.ca_file,
            allow_http=order.allow_http,
            on_outage=self._telling.outage,
        )
