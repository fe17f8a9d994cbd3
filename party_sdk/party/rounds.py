"""Rounds of a party: it answers each task once, and stores the answer before sending."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from clustering_protocols import engine
from clustering_protocols.common.errors import (
    CoterieError,
    Equivocation,
    GuardRefused,
    NotReady,
    RoundClosed,
    SessionOver,
)
from clustering_protocols.contract import PrivacySpending
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Selection
from clustering_protocols.engine import packets
from clustering_protocols.engine.stages import find_stage
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.record import Record
from clustering_protocols.terms.session_risks import OTHER_UNITS
from clustering_protocols.terms.signed_logs import check_receipt
from clustering_protocols.terms.terms import Terms
from clustering_protocols.wire.answers import Receipt, SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import LONG_POLL_SECONDS, Analyst
from party_sdk.disclosures.history import Rows, degrees_in, row_history_of
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.party.asker import Asker
from party_sdk.party.party_session import WITHDRAWN, Consent, DurableState, PartySession

_REPORT_SECONDS: Final = 1.0
_MIN_POLL_SECONDS: Final = 0.2  # minimum time between two requests for a task

OnProgress = Callable[[SessionStatus], None]


@dataclass(kw_only=True)
class Responder:
    """Answers the tasks of one party in one session, whose lock the caller holds.

    allows_combination: whether the operator allows what this session and other sessions
        disclose in combination.
    """

    stored: PartySession
    analyst: Analyst
    terms: Terms = field(repr=False)
    policy: Policy
    asker: Asker | None
    allows_combination: bool
    _state: DurableState = field(init=False, repr=False)
    _agreement_id: str = field(init=False)
    _acknowledged: bool = field(init=False)
    _receipt: Receipt | None = field(default=None, init=False, repr=False)
    _use: Use | None = field(default=None, init=False, repr=False)
    _recorded: tuple[Use, int] | None = field(default=None, init=False, repr=False)
    _rows: Rows | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._state = self.stored.load_state()
        self._agreement_id = self.stored.agreement_id
        round_key = self._state.round_key
        self._acknowledged = self.stored.ledger.has_receipt(round_key)

    def answer_and_await(
        self, party: engine.PartyEngine, task: bytes, data: DataSource
    ) -> bytes | None:
        """Answer a task, and return the next task.

        A repeated task is answered with the same bytes as before.

        Returns None if the analyst has no next task within the long poll.

        Raises CoterieError: one of :data:`~clustering_protocols.engine.FINAL` if the
            task breaks the rules, such as a different second task for the same round
            and attempt; the party then stops for good. Raises GuardRefused if the
            party's policy or its operator refuses the answer.
        """
        try:
            return self._answer_task(party, task, data)
        except CoterieError as error:
            if isinstance(error, engine.FINAL) and not self._state.journal.stopped:
                journal = self._state.journal.stop_by_error(error)
                self.stored.save_journal(journal)
                self._state = replace(self._state, journal=journal)
            with suppress(Equivocation):  # the operator must see the first error
                self._store_receipt()
            raise

    def _answer_task(
        self, party: engine.PartyEngine, task: bytes, data: DataSource
    ) -> bytes | None:
        last = self._state
        last.journal.check_not_stopped()
        packet, digest = packets.parse(task), sha256(task).hexdigest()
        round_key = (packet.address.round, packet.address.attempt)
        if round_key == last.round_key:
            if digest != last.task_digest:
                raise Equivocation(f"Round {round_key[0]}, attempt {round_key[1]}.")
            self._store_receipt()
            return self._send_last(party)
        before = last.memory_before(*round_key)
        answer = party.reply(
            last.journal, before, packet, data, acknowledged=self._acknowledged
        )
        state = DurableState(
            round=round_key[0],
            attempt=round_key[1],
            task_digest=digest,
            contribution_digest=sha256(answer.contribution).hexdigest(),
            contribution=answer.contribution,
            journal=answer.journal,
            before=before,
            after=answer.memory,
        )
        self._store_answer(state, answer, data, packet.address.stage)
        return self._send_contribution(answer.contribution)

    def send_again(self, party: engine.PartyEngine) -> None:
        """Send the last answer again if it has no receipt, for example after a crash.

        Raises AuditBroken if the log was changed. Raises GuardRefused if the operator
        withdrew consent and does not approve the answer.
        """
        last, ledger = self._state, self.stored.ledger
        ledger.verified_entries()
        if ledger.awaits_receipt(last.round_key):
            self._send_last(party)

    def _send_last(self, party: engine.PartyEngine) -> bytes | None:
        contribution = self._state.sent_contribution
        _, stages = engine.load_session(party.agreement)
        stage = find_stage(stages, packets.parse(contribution))
        answers = [exchange.answer for exchange in stage.exchanges]
        self._require_approval(contribution, [*answers, *stage.envelopes], {}, "")
        return self._send_contribution(contribution)

    def _store_answer(
        self,
        state: DurableState,
        answer: engine.TaskOutcome,
        data: DataSource,
        stage: str,
    ) -> None:
        selection = answer.memory.get(Selection)
        if selection is not None:
            self.policy.check_min_rows(self.terms, len(selection.rows), are_linked=True)
        self._store_receipt()  # approval may end this process until a person answers
        allows = f"Or allow it: --choice {OTHER_UNITS}=true." if answer.doubts else ""
        self._require_approval(
            answer.contribution, answer.records, answer.notes, answer.question, allows
        )
        with self.stored.store.transaction():
            recorded = self._record_use(answer.memory, data, stage)
            self.stored.save_state(state, self._state)
            self.stored.ledger.log_sending(
                state.round_key,
                state.task_digest,
                state.contribution_digest,
                len(state.contribution),
                answer.notes,
            )
        self._state, self._recorded, self._receipt = state, recorded, None
        self._acknowledged = False

    def _require_approval(
        self,
        contribution: bytes,
        records: Sequence[type[Record]],
        notes: Mapping[str, Any],
        question: str,
        remedy: str = "",
    ) -> None:
        """Ask the operator to approve an answer that the consent does not cover.

        remedy: what to do if nobody can be asked; by default that of all guards.

        A refusal stays in force until the operator is asked again and agrees.
        """
        stored, asker = self.stored, self.asker
        consent = self._stored_consent()
        is_withdrawn = consent.withdrawn_at is not None
        is_present = asker is not None and asker.is_present
        if consent.is_held and not is_present:
            raise GuardRefused(
                "The operator did not approve an earlier contribution: continue at a "
                "terminal, and answer yes."
            )
        if is_withdrawn and not is_present:
            raise GuardRefused(f"{WITHDRAWN} Continue at a terminal, or with --accept.")
        if asker is not None and notes:
            asker.show_notes(notes)
        if question or is_withdrawn or consent.is_held:
            if asker is None or not is_present:
                raise GuardRefused(question, remedy=remedy)
            from clustering_protocols.engine.inspection import Inspection

            if not asker.approve(Inspection.of(contribution, notes, question, records)):
                stored.hold_contributions(are_held=True)
                raise GuardRefused("The operator did not approve this contribution.")
            # the operator may have waited for hours, and withdrawn consent meanwhile
            if self._stored_consent().withdrawn_at != consent.withdrawn_at:
                raise GuardRefused(
                    f"{WITHDRAWN} Continue at a terminal, or with --accept."
                )
            if is_withdrawn:
                stored.give_consent()
        if consent.is_held:
            stored.hold_contributions(are_held=False)

    def _stored_consent(self) -> Consent:
        stored = self.stored
        if (consent := stored.consent) is None:
            raise NotReady(f"{stored.session} {stored.slot} was forgotten meanwhile.")
        return consent

    def _record_use(
        self, memory: Memory, data: DataSource, stage: str
    ) -> tuple[Use, int] | None:
        """Record what a session discloses about the rows, before an answer is sent.

        It is recorded from the first stage that uses values, because an answer that
        discloses nothing yet may let others read rows later.

        Returns the use and its number of sums, or None if nothing is disclosed yet.
        """
        terms, slot = self.terms, self.stored.slot
        self._use = self._use or Use.from_terms(
            terms, self._agreement_id, slot, data.columns
        )
        if not (self._use.discloses_anything and engine.uses_values(stage)):
            return self._recorded
        selection, spending = memory.get(Selection), memory.get(PrivacySpending)
        selected_rows = None if selection is None else selection.rows
        n_rows = data.n_rows if selected_rows is None else len(selected_rows)
        sums = row_history_of(memory, terms, slot, n_rows)
        update: dict[str, Any] = {"degrees": degrees_in(memory, terms)}
        if spending is not None:
            update["epsilon"] = (
                math.inf if spending.epsilon is None else spending.epsilon
            )
        use = self._use.model_copy(update=update)
        if self._recorded != (use, sums.n_sums):
            history = self.stored.history
            if self._rows is None or len(self._rows.marks) != n_rows:
                self._rows = history.rows_of(data, selected_rows)
            history.record(
                use, self._rows, self.policy, sums, is_agreed=self.allows_combination
            )
        return use, sums.n_sums

    def _send_contribution(self, contribution: bytes) -> bytes | None:
        """Send the stored answer, and return the next task if the analyst has one.

        If there is a next task, the receipt is stored together with the answer to that
        task. After a crash before that, the answer is sent again to obtain the receipt.
        """
        session, task = self.terms.session, None
        round_key, digest = self._state.round_key, self._state.contribution_digest
        try:
            receipt, task = self.analyst.contribute(
                session, *round_key, contribution, LONG_POLL_SECONDS, digest=digest
            )
            if self.terms.identities.analyst is not None:
                check_receipt(self.terms.identities.analyst, receipt)
            self._receipt, self._acknowledged = receipt, True
            if task is None:
                self._store_receipt()
        except RoundClosed:
            status = self.analyst.session(session)
            is_open = (status.round, status.attempt) == round_key
            if status.state is SessionState.COLLECTING and is_open:
                raise
            # A quorum answered before this party, and the session continued.
        except SessionOver as over:
            if over.state != SessionState.COMPLETED:
                raise
        return task

    def _store_receipt(self) -> None:
        """Log the receipt of the last answer, unless it is logged already."""
        if self._receipt is not None:
            self.stored.ledger.log_receipt(self._state.round_key, self._receipt)


class SessionWatch:
    """Fetches the status and the tasks of a session, and reports changes of the status."""

    def __init__(
        self, analyst: Analyst, session: str, on_progress: OnProgress | None
    ) -> None:
        self._analyst = analyst
        self._session = session
        self._on_progress = on_progress
        self._last: SessionStatus | None = None
        self._reported_at = -_REPORT_SECONDS

    def fetch_status(self) -> SessionStatus:
        """Fetch the status of the session, and report it if it has changed."""
        status = self._analyst.session(self._session)
        if self._on_progress is not None and status != self._last:
            self._on_progress(status)
        self._last = status
        return status

    def report_status(self, *, busy: bool = False) -> None:
        """Fetch and report the status; at most once a second if the party is ``busy``."""
        now = time.monotonic()
        is_due = not busy or now >= self._reported_at + _REPORT_SECONDS
        if self._on_progress is not None and is_due:
            self.fetch_status()
            self._reported_at = now

    def fetch_task(self) -> bytes | None:
        """Return the open task, or None if there is none or the session is completed.

        The analyst holds the request for a while. If it answers at once, this method
        waits briefly, so that the caller may ask again immediately.

        Raises SessionOver if the session ended without a result.
        """
        started_at = time.monotonic()
        try:
            task = self._analyst.task(self._session, LONG_POLL_SECONDS)
        except SessionOver as over:
            if over.state != SessionState.COMPLETED:
                raise
            return None
        if task is None:
            time.sleep(max(0.0, started_at + _MIN_POLL_SECONDS - time.monotonic()))
        return task
