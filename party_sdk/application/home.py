"""An institution's home directory, and the actions that the institution can take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustering_protocols.catalogue import check_choice_names
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    NotReady,
    RiskNotAccepted,
)
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.session_risks import BY_DESIGN, OTHER_UNITS
from clustering_protocols.terms.signed_logs import SignedLog, sign_ledger
from clustering_protocols.wire.states import StopReason
from coterie_pages.models import RunReport, TermsSheet
from coterie_pages.views.terms_sheet import identify, sheet_of
from party_sdk.admission.table_admission import match_key_values_of, row_warnings
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.analyst_client.transport import NO_LISTENERS, Listeners
from party_sdk.application.outputs import Outputs
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions
from party_sdk.home.policy import Policy
from party_sdk.party.asker import Asker
from party_sdk.party.leave import decline_slot, leave_session
from party_sdk.party.notifications import OwnReceivers
from party_sdk.party.participant import (
    Offer,
    Party,
    check_inviter,
    fetch_offer,
    find_stored_offer,
)
from party_sdk.party.party_index import has_accepted, slots_of
from party_sdk.party.party_session import PartySession
from party_sdk.party.roster import PeerVerifier, Roster
from party_sdk.party.rounds import OnProgress
from party_sdk.party.stored_mappings import MappingChange
from party_sdk.reports.run_reports import run_report, session_manifest

if TYPE_CHECKING:
    from party_sdk.results.new_rows import NewRows
    from party_sdk.results.results import Result
    from party_sdk.tables.linkage import UnlinkedRow


@dataclass(frozen=True, kw_only=True)
class Home:
    """An institution's home: a directory with its policy, identity and sessions.

    path: the directory.
    patience, listeners: as for :func:`~party_sdk.analyst_client.http_analyst.connect`.
    entropy: 32 bytes from which the identity and all random numbers are derived.
    asker: puts questions to the operator; by default, nobody is asked.
    moved, safety_number, confirmed_with: the operator's answers in advance; see
        :meth:`Party.join`.
    new_mapping: whether a new mapping of a table may replace the stored one.
    """

    path: Path
    patience: float = 300.0
    listeners: Listeners = NO_LISTENERS
    entropy: bytes | None = None
    asker: Asker | None = None
    moved: bool = False
    safety_number: str | None = None
    confirmed_with: tuple[str, ...] = ()
    new_mapping: bool = False

    def connect(self, url: str) -> Analyst:
        """Create a client for the analyst at an address."""
        return connect(url, patience=self.patience, listeners=self.listeners)

    def stored_session(self, session: str, slot: str) -> PartySession:
        """Return the stored session of a slot.

        session: the id of the session, or an invitation to it.

        Raises InvitationUnreadable if ``session`` is any other text. Such a text may be
        a part of an invitation, which is a secret, and later errors would print it.
        """
        if not re.fullmatch(NAME_PATTERN, session):
            session = Invitation.parse(session).session
        return PartySession(self.path, session, slot)

    @property
    def trusted_institutions(self) -> TrustedInstitutions:
        """Return the institutions whose cards this home trusts."""
        return TrustedInstitutions(self.path)

    def institution(self) -> Institution | None:
        """Return the institution of this home, or None if it has no identity yet."""
        if self.entropy is None:
            return OwnIdentity(self.path).stored
        return Institution.derive(self.entropy)

    def fetch_offer(self, invitation: str, policy: Policy) -> Offer:
        """Return the terms that an invitation offers.

        If this home stores these terms, nothing is sent to the analyst. Otherwise, only
        the code of the invitation is sent.

        Raises GuardRefused if the policy does not list the inviter. Raises CoterieError
        as :func:`~party_sdk.party.participant.fetch_offer` does.
        """
        parsed = Invitation.parse(invitation)
        stored = self.stored_session(parsed.session, parsed.slot)
        check_inviter(parsed, stored, policy)
        if (offer := find_stored_offer(parsed, stored)) is not None:
            return offer
        with self.connect(parsed.url) as analyst:
            return fetch_offer(parsed, analyst)

    def terms_sheet(self, offer: Offer) -> TermsSheet:
        """Return the terms sheet of an offer."""
        institution = self.institution()
        return sheet_of(
            offer.text,
            offer.terms,
            self.trusted_institutions.names_by_key(),
            url=offer.invitation.url,
            slot=offer.invitation.slot,
            you=None
            if institution is None
            else identify(institution.key, {institution.key: institution.name}),
        )

    def ask_consent(
        self,
        invitation: str,
        policy: Policy,
        offer: Offer | None = None,
        sheet: str | None = None,
    ) -> Policy:
        """Ask for consent to an invitation; return a policy that accepts all its risks.

        If the party has already joined, nobody is asked again. The risk of every
        session is accepted with the first sheet.

        offer: the offer of the invitation, if the caller has already fetched it.
        sheet: the SHA-256 of the accepted terms sheet; by default, the operator is
            asked unless the policy accepts every risk.

        Raises RiskNotAccepted if the sheet differs or is refused, or if nobody can be
        asked. Raises CoterieError, without asking, if the policy refuses the terms for
        another reason.
        """
        parsed = Invitation.parse(invitation)
        stored = self.stored_session(parsed.session, parsed.slot)
        if stored.exists:
            policy = policy.accept_risks(stored.load_identity().accepted_risks)
        if has_accepted(self.path, BY_DESIGN):  # a risk of every session
            policy = policy.accept_risks([BY_DESIGN])
        if stored.has_joined and sheet is None:
            return policy
        offer = offer or self.fetch_offer(invitation, policy)
        terms = offer.terms
        risks = policy.unaccepted_risks(terms)
        new_policy = policy.accept_risks(risks)
        new_policy.check_terms(terms)
        if sheet is not None:
            from coterie_pages.views.terms_sheet import consent_digest

            if sheet.strip().lower() != consent_digest(offer.text, terms):
                raise RiskNotAccepted(
                    "The accepted sheet does not belong to these terms."
                )
            if (consent := stored.consent) is not None and consent.withdrawn_at:
                stored.give_consent()
        elif risks and self.asker is None:
            raise RiskNotAccepted(f"{len(risks)}: {', '.join(risks)}.")
        elif risks and self.asker is not None:
            self.asker.accept(self.terms_sheet(offer))
        return new_policy

    def join(
        self,
        invitation: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
        offer: Offer | None = None,
    ) -> Party:
        """Create the party for an invitation whose terms were accepted.

        offer: the offer of the invitation, if the caller has already fetched it.
        """
        return Party.join(
            invitation,
            policy=policy,
            home=self.path,
            entropy=self.entropy,
            analyst=self.connect(Invitation.parse(invitation).url),
            choices=choices,
            asker=self.asker,
            safety_number=self.safety_number,
            confirmed_with=self.confirmed_with,
            accept_moved=self.moved,
            offer=offer,
        )

    def resume(self, session: str, slot: str) -> Party:
        """Load the party of a session and slot, so that its stored data can be read."""
        identity = self.stored_session(session, slot).load_identity()
        return self.join(identity.invitation, Policy())

    def withdraw_consent(self, session: str, slot: str) -> None:
        """Withdraw the consent to the terms sheet.

        A running party asks again before its next contribution, or stops if nobody can
        be asked.
        """
        stored = self.stored_session(session, slot)
        stored.load_identity()
        stored.withdraw_consent()

    def run(
        self,
        member: Party,
        rows: TableSpec,
        outputs: Outputs,
        *,
        on_warning: Callable[[str], None] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Take part in a session with a table, and write the files of the result.

        on_warning: called with each warning about the rows of the table.
        on_progress: called with the status of the session whenever it changes.
        """
        outputs.check_overwriting(member.stored)
        rows = self.map_spec(member.stored, rows)
        with member.announce_refusals():
            data = rows.open(member.slot_fields)
        with member.stored.lock():
            member.save_mapping(rows.options.mapping, data)
        if on_warning is not None:
            for sentence in row_warnings(member.terms, member.invitation.slot, data):
                on_warning(sentence)
        result = member.run(data, on_progress=on_progress)
        outputs.write_files(member, result, data)
        return result

    def label(
        self,
        session: str,
        slot: str,
        rows: TableSpec,
        *,
        choices: Mapping[str, Any] | None = None,
        agree: Callable[[str], bool] | None = None,
    ) -> NewRows:
        """Label new rows with the stored result of a session.

        choices: this home's own decisions, as for :meth:`join`.
        agree: asks whether to continue if units seem to differ and no choice allows it.

        Raises NotReady if there is no result, and GuardRefused if the terms release no
        model, or if units seem to differ and nobody agrees.
        """
        choices = choices or {}
        allows_other_units = bool(choices.get(OTHER_UNITS))
        with self.resume(session, slot) as member:
            check_choice_names(member.terms.protocol.name, choices)
            result = member.result()
            result.check_can_label_new_rows()
            mapping = rows.options.mapping or member.stored.mappings.for_new_rows()
            fields, columns = member.slot_fields.of_new_rows(result.columns)
            data = rows.with_mapping(mapping).open(fields, columns)
            return result.predict(
                data, agree=(lambda _: True) if allows_other_units else agree
            )

    def can_label_new_rows(self, session: str, slot: str) -> bool:
        """Return whether the stored result of a session can label new rows."""
        with self.resume(session, slot) as member:
            return member.result().can_label_new_rows

    def find_unlinked(
        self, member: Party, rows: TableSpec, result: Result
    ) -> list[UnlinkedRow]:
        """Return the rows that were not linked to any other party's rows.

        The list is empty if the session has no match keys.
        """
        from party_sdk.tables.linkage import find_unlinked_rows

        if not member.slot_fields.match_key_columns:
            return []
        data = self.map_spec(member.stored, rows).open(member.slot_fields)
        keys = match_key_values_of(member.terms, member.invitation.slot, data)
        return find_unlinked_rows(keys, data, result.labels)

    def map_spec(self, stored: PartySession, rows: TableSpec) -> TableSpec:
        """Return the table with the mapping that it names, by default the stored one.

        Raises GuardRefused if the table names a new mapping and nobody agrees to it.
        """
        mapping = stored.mappings.choose_mapping(rows.options.mapping, self._agree)
        return rows.with_mapping(mapping)

    def open_own_table(self, member: Party, rows: TableSpec) -> DataSource:
        """Open a party's table with the columns with which the party joined."""
        columns = member.stored.load_identity().columns
        return self.map_spec(member.stored, rows).open(member.slot_fields, columns)

    def _agree(self, change: MappingChange) -> bool:
        if self.new_mapping:
            return True
        return self.asker is not None and self.asker.confirm_mapping(change)

    def decline_invitation(self, invitation: str, reason: str) -> None:
        """Tell the coordinator why this institution declines an invitation."""
        parsed = Invitation.parse(invitation)
        with self.connect(parsed.url) as analyst:
            decline_slot(analyst, parsed.code, reason)

    def withdraw(
        self, invitation: str, explanation: str, reason: StopReason = StopReason.LEFT
    ) -> bool:
        """Leave the session of an invitation, or decline the invitation.

        explanation: a text for the coordinator, sent only if the party has not joined
            yet.
        reason: the reason that the other parties read, sent only if the party has
            joined.

        Returns bool: whether the others were informed.
        """
        parsed = Invitation.parse(invitation)
        stored = self.stored_session(parsed.session, parsed.slot)
        if not stored.exists:
            self.decline_invitation(invitation, explanation)
            return True
        with self.connect(parsed.url) as analyst:
            return leave_session(stored, analyst, explanation, parsed.code, reason)

    @contextmanager
    def open_receivers(self, session: str, slot: str) -> Iterator[OwnReceivers]:
        """Connect to the analyst to manage the addresses that receive notifications."""
        identity = self.stored_session(session, slot).load_identity()
        with self.connect(Invitation.parse(identity.invitation).url) as analyst:
            yield OwnReceivers(analyst.as_party(identity.token or ""), session)

    def find_session(self, session: str, slot: str) -> PartySession:
        """Return a stored session, or the remains of a session that was forgotten.

        Raises NotReady if nothing is stored.
        """
        stored = self.stored_session(session, slot)
        if not stored.exists:
            if (forgotten := stored.last_forgotten()) is not None:
                return forgotten
            stored.load_identity()  # raises NotReady
        return stored

    def find_named(self, name: str, slot: str | None) -> PartySession:
        """Return the stored session of an invitation, or of a session name and a slot.

        Raises InvalidParameters if ``slot`` is None, but this home has several slots of
        the session.
        """
        if "#" in name:
            parsed = Invitation.parse(name)
            return self.find_session(parsed.session, parsed.slot)
        slots = slots_of(self.path, name)
        if slot is None and len(slots) > 1:
            raise InvalidParameters(f"Name one of the slots: {', '.join(slots)}.")
        return self.find_session(name, slot or (slots[0] if slots else "?"))

    def report(self, stored: PartySession, rows: TableSpec | None = None) -> RunReport:
        """Return the report of a stored or forgotten party.

        rows: the party's table; if it is given, the report includes a plot of its rows.
        """
        report = stored.report
        if report is not None:
            if rows is not None:
                raise NotReady("The labels were deleted, so no rows can be plotted.")
            return RunReport.model_validate_json(report)
        with self.resume(stored.session, stored.slot) as member:
            data = None if rows is None else self.open_own_table(member, rows)
            return run_report(member, self.path, data=data)

    def manifest(self, stored: PartySession) -> dict[str, Any]:
        """Return the manifest of a stored session as JSON values.

        Raises NotReady if the session was forgotten.
        """
        with self.resume(stored.session, stored.slot) as member:
            return session_manifest(member)

    def forget(self, session: str, slot: str, *, everything: bool = False) -> None:
        """Delete a stored session, but keep its log and a report unless ``everything``.

        Raises NotReady if nothing is stored. Raises CoterieError if the report cannot
        be made; nothing is deleted then.
        """
        stored = self.stored_session(session, slot)
        if everything:
            self.find_session(session, slot)
            stored.forget(everything=True)
            return
        stored.load_identity()
        try:
            report = self.report(stored).model_dump_json().encode()
        except CoterieError as error:
            error.remedy += " To delete the session without a report: --all."
            raise
        stored.forget(report)

    def sign_log(self, stored: PartySession) -> SignedLog:
        """Return a party's log, signed by the institution as which the party joined."""
        institution = PeerVerifier(self.path, self.entropy).institution
        member = stored.member
        if member is None or member.identity != institution.key:
            raise NotReady("This party did not join as this home's institution.")
        return sign_ledger(
            institution, stored.session, stored.slot, stored.ledger.verified_lines
        )

    def roster(self, session: str, slot: str) -> Roster | None:
        """Return the members of a session, or None if it has no agreement yet."""
        agreement = self.find_session(session, slot).agreement
        if agreement is None:
            return None
        return Roster.of(agreement, TrustedInstitutions(self.path), slot)
