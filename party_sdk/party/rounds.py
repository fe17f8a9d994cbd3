"""Rounds of a party: every task answered once, the answer kept before it is sent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from clustering_protocols import engine
from clustering_protocols.common.errors import (
    CoterieError,
    Equivocation,
    GuardRefused,
    RoundClosed,
    SessionOver,
)
from clustering_protocols.contract import PrivacySpending
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Selection
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.terms.signed_logs import check_receipt
from clustering_protocols.terms.terms import Terms
from clustering_protocols.wire.answers import Receipt, SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import LONG_POLL_SECONDS, Analyst
from party_sdk.disclosures.history import Rows, degrees_in, history_of
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.party.asker import Asker
from party_sdk.party.party_session import (
    WITHDRAWN,
    AnsweredRound,
    DurableState,
    PartySession,
)

_LOOK_SECONDS: Final = 1.0
_LEAST_SECONDS: Final = 0.2  # between two questions whether there is a task

OnProgress = Callable[[SessionStatus], None]


@dataclass(kw_only=True)
class Responder:
    """The rounds of one party in one session; the caller has locked its stored.

    ``shown_together``: whether the operator lets rows be shown beside what other
    sessions showed of them.
    """

    stored: PartySession
    analyst: Analyst
    terms: Terms = field(repr=False)
    policy: Policy
    asker: Asker | None
    shown_together: bool
    _state: DurableState = field(init=False, repr=False)
    _attempt: str = field(init=False)
    _acknowledged: bool = field(init=False)
    _receipt: Receipt | None = field(default=None, init=False, repr=False)
    _use: Use | None = field(default=None, init=False, repr=False)
    _recorded: tuple[Use, int] | None = field(default=None, init=False, repr=False)
    _rows: Rows | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._state = self.stored.load_state()
        self._attempt = self.stored.attempt
        place = self._state.answered.place
        self._acknowledged = self.stored.ledger.has_receipt(place)

    def answer(
        self, party: engine.PartyEngine, task: bytes, data: DataSource
    ) -> bytes | None:
        """Answer a task; one that was answered before gets the same bytes again.

        Returns the next task, where the analyst has it soon enough.

        A party that refuses an analyst which broke the rules stops for good.

        Raises CoterieError: one of :data:`~clustering_protocols.engine.FINAL` if the
            analyst may not ask this, for example something else under the same round
            and attempt.
        Raises GuardRefused if the party's policy, or its operator, does not let the
            answer go.
        """
        try:
            return self._answer(party, task, data)
        except CoterieError as error:
            if isinstance(error, engine.FINAL) and not self._state.journal.stopped:
                journal = self._state.journal.refuse(error)
                self.stored.save_journal(journal)
                self._state = replace(self._state, journal=journal)
            with suppress(Equivocation):  # the error is what the operator has to read
                self._store_receipt()
            raise

    def _answer(
        self, party: engine.PartyEngine, task: bytes, data: DataSource
    ) -> bytes | None:
        last = self._state
        last.journal.check_going()
        asked, digest = packets.read(task), sha256(task).hexdigest()
        here = (asked.address.round, asked.address.attempt)
        if here == last.answered.place:
            if digest != last.answered.task_digest:
                raise Equivocation(f"Round {here[0]}, attempt {here[1]}.")
            self._store_receipt()
            return self._send(last.sent_contribution)
        before = last.answered.base(*here)
        answer = party.reply(
            last.journal, before, asked, data, acknowledged=self._acknowledged
        )
        fresh = AnsweredRound(
            round=here[0],
            attempt=here[1],
            task_digest=digest,
            contribution_digest=sha256(answer.contribution).hexdigest(),
            before=before,
            after=answer.memory,
        )
        self._keep(fresh, answer, data, shows=party.shows_rows(asked))
        return self._send(answer.contribution)

    def send_again(self) -> None:
        """Send what a crash, or a lost answer, has left without a receipt.

        Raises AuditBroken if the log of what was sent was changed.
        """
        last, ledger = self._state, self.stored.ledger
        ledger.read()
        if ledger.awaits_receipt(last.answered.place):
            self._send(last.sent_contribution)

    def _keep(
        self,
        fresh: AnsweredRound,
        answer: engine.TaskOutcome,
        data: DataSource,
        *,
        shows: bool,
    ) -> None:
        """Keep a new answer, after the policy and the operator have let it go."""
        selection = answer.memory.get(Selection)
        if selection is not None:
            self.policy.check_rows(self.terms, len(selection.rows), are_linked=True)
        self._require_approval(answer)  # before it counts as answered
        state = DurableState(
            answered=fresh, journal=answer.journal, contribution=answer.contribution
        )
        with self.stored.store.transaction():
            self._store_receipt()
            recorded = self._record(answer.memory, data, shows=shows)
            self.stored.save_state(state, self._state)
            self.stored.ledger.note_sending(
                fresh.place,
                fresh.task_digest,
                fresh.contribution_digest,
                len(answer.contribution),
                answer.notes,
            )
        self._state, self._recorded = state, recorded
        self._acknowledged = False

    def _require_approval(self, answer: engine.TaskOutcome) -> None:
        """Ask the operator where the accepted sheet does not say enough.

        A no stands until they are asked again, and say yes.
        """
        stored, asker = self.stored, self.asker
        is_held, withdrawn_at = stored.objections
        is_withdrawn = withdrawn_at is not None and stored.consents.given is None
        is_present = asker is not None and asker.is_present
        if is_held and not is_present:
            raise GuardRefused(
                "The operator did not let an earlier contribution go: continue at a "
                "terminal, and say yes."
            )
        if is_withdrawn and not is_present:
            raise GuardRefused(f"{WITHDRAWN} Go on at a terminal, or with --accept.")
        if asker is not None and answer.notes:
            asker.note(answer.notes)
        if answer.question or is_withdrawn:
            if asker is None or not is_present:
                raise GuardRefused(answer.question)
            from clustering_protocols.engine.inspection import Inspection

            found = Inspection.of(
                answer.contribution, answer.notes, answer.question, answer.records
            )
            if not asker.let_go(found):
                stored.hold(refused=True)
                raise GuardRefused("The operator did not let this contribution go.")
            if is_withdrawn:
                stored.consents.give()
        if is_held:
            stored.hold(refused=False)

    def _record(
        self, memory: Memory, data: DataSource, *, shows: bool
    ) -> tuple[Use, int] | None:
        """Keep what the session shows of the rows that take part, before it leaves.

        Returns what is kept once the transaction is: the use, and the number of sums.
        """
        terms, slot = self.terms, self.stored.slot
        selection, spent = memory.get(Selection), memory.get(PrivacySpending)
        chosen = None if selection is None else selection.rows
        n_rows = data.n_rows if chosen is None else len(chosen)
        summed = history_of(memory, terms, slot, n_rows)
        update: dict[str, Any] = {"degrees": degrees_in(memory, terms)}
        if spent is not None:
            update["epsilon"] = math.inf if spent.epsilon is None else spent.epsilon
        if not shows and not summed.n_sums and not any(update.values()):
            return self._recorded
        self._use = self._use or Use.from_terms(
            terms, self._attempt, slot, data.columns
        )
        use = self._use.model_copy(update=update)
        if self._recorded != (use, summed.n_sums):
            history = self.stored.history
            if self._rows is None or len(self._rows.marks) != n_rows:
                self._rows = history.rows_of(data, chosen)
            history.record(
                use, self._rows, self.policy, summed, is_agreed=self.shown_together
            )
        return use, summed.n_sums

    def _send(self, contribution: bytes) -> bytes | None:
        """Send the last answer, which is stored; return the task that follows, if any.

        Its receipt is stored with the next answer, where the task for that is here. Of a
        process that dies before, the next one asks for it again.
        """
        session, task = self.terms.session, None
        answered = self._state.answered
        here, digest = answered.place, answered.contribution_digest
        try:
            receipt, task = self.analyst.contribute(
                session, *here, contribution, LONG_POLL_SECONDS, digest=digest
            )
            if self.terms.identities.analyst is not None:
                check_receipt(self.terms.identities.analyst, receipt)
            self._receipt, self._acknowledged = receipt, True
            if task is None:
                self._store_receipt()
        except RoundClosed:
            status = self.analyst.session(session)
            open_here = (status.round, status.attempt) == here
            if status.state is SessionState.COLLECTING and open_here:
                raise
            # a quorum was enough: continue with what comes next
        except SessionOver as over:
            if over.state != SessionState.COMPLETED:
                raise
        return task

    def _store_receipt(self) -> None:
        receipt, self._receipt = self._receipt, None
        if receipt is not None:
            place = self._state.answered.place
            self.stored.ledger.note_receipt(place, receipt)


class SessionWatch:
    """Tells the operator whenever the session has moved."""

    def __init__(
        self, analyst: Analyst, session: str, on_progress: OnProgress | None
    ) -> None:
        self._analyst = analyst
        self._session = session
        self._on_progress = on_progress
        self._last: SessionStatus | None = None
        self._looked = -_LOOK_SECONDS

    def look(self) -> SessionStatus:
        """Return where the session stands; tell if that is news."""
        status = self._analyst.session(self._session)
        if self._on_progress is not None and status != self._last:
            self._on_progress(status)
        self._last = status
        return status

    def tell(self, *, busy: bool = False) -> None:
        """Look, if there is anybody to tell; of a ``busy`` party once a second."""
        now = time.monotonic()
        is_due = not busy or now >= self._looked + _LOOK_SECONDS
        if self._on_progress is not None and is_due:
            self.look()
            self._looked = now

    def task(self) -> bytes | None:
        """Return the open task; None if there is no task now or the session is complete.

        The analyst holds the request for a while; one that does not is asked again after
        a moment. :class:`SessionOver` if the session ended without a result.
        """
        asked = time.monotonic()
        try:
            task = self._analyst.task(self._session, LONG_POLL_SECONDS)
        except SessionOver as over:
            if over.state != SessionState.COMPLETED:
                raise
            return None
        if task is None:
            time.sleep(max(0.0, asked + _LEAST_SECONDS - time.monotonic()))
        return task
