"""An institution at its home, and all that it does there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clustering_protocols.catalogue import check_choices
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    NotReady,
    RiskNotAccepted,
)
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.session_terms import check_terms
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.session_risks import OTHER_UNITS
from clustering_protocols.terms.signed_logs import SignedLog, sign_ledger
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import StopReason
from party_sdk.admission.table_admission import row_warnings
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.analyst_client.transport import NO_LISTENERS, Listeners
from party_sdk.application.outputs import Outputs
from party_sdk.home.clock import now
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions
from party_sdk.home.policy import Policy
from party_sdk.home.policy_files import read_policy, remember
from party_sdk.party.asker import Asker
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.leave import decline, leave
from party_sdk.party.notifications import OwnReceivers
from party_sdk.party.participant import Party, preview_terms
from party_sdk.party.party_index import slots_of
from party_sdk.party.party_session import PartySession
from party_sdk.party.roster import Meeting, Roster
from party_sdk.party.rounds import OnProgress

if TYPE_CHECKING:
    from coterie_pages.models import RunReport, TermsSheet
    from party_sdk.results.new_rows import NewRows
    from party_sdk.results.results import Result
    from party_sdk.tables.linkage import UnlinkedRow
    from party_sdk.tables.mapping import TableMapping


class Offer(NamedTuple):
    """What an invitation offers: the exact text of its terms, and what that says."""

    invitation: Invitation
    text: bytes
    terms: Terms


@dataclass(frozen=True, kw_only=True)
class Home:
    """The home of an institution: policy, identity and memory in one folder.

    path: that folder.
    patience, listeners: as for
        :func:`~party_sdk.analyst_client.http_analyst.connect`.
    entropy: 32 bytes that stand for all chance and for the home's identity.
    asker: the person at this home; nobody is asked by default.
    moved, safety_number, confirmed_with: what that person knows already; see
        :meth:`Party.join`.
    new_mapping: whether another mapping of a table counts than the one that is kept.
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
        """Return the analyst at an address."""
        return connect(url, patience=self.patience, listeners=self.listeners)

    def stored(self, session: str, slot: str) -> PartySession:
        """Return what is kept of a session on this disk."""
        return PartySession(self.path, session, slot)

    @property
    def trusted_institutions(self) -> TrustedInstitutions:
        """Return the institutions whose cards this home trusts."""
        return TrustedInstitutions(self.path)

    def institution(self) -> Institution | None:
        """Return whose home this is; None where no identity was made yet."""
        if self.entropy is None:
            return OwnIdentity(self.path).stored
        return Institution.derive(self.entropy)

    def offer(self, invitation: str, policy: Policy | None = None) -> Offer:
        """Return what an invitation offers; as kept here, once it was accepted.

        Nothing but the question what the invitation is for is sent.

        policy: refuses an inviter before the analyst is asked, until the slot is taken.

        Raises AgreementMismatch if the analyst shows other terms than the coordinator
            signed.
        Raises CoterieError if it cannot be asked, or does not know the invitation.
        """
        parsed = Invitation.parse(invitation)
        stored = self.stored(parsed.session, parsed.slot)
        if policy is not None and not stored.has_joined:
            known = self.trusted_institutions.read()
            policy.check_inviter(parsed.url, parsed.coordinator, known)
        if stored.exists:
            kept = stored.load_identity().terms.encode()
            if digest(kept) == parsed.terms:
                return Offer(parsed, kept, read_terms(kept))
        with self.connect(parsed.url) as analyst:
            preview, terms = preview_terms(analyst, parsed)
        return Offer(parsed, preview.terms.encode(), terms)

    def sheet(self, offer: Offer) -> TermsSheet:
        """Return the terms of an invitation in words."""
        from coterie_pages.views.terms_sheet import sheet_of
        from party_sdk.reports.run_reports import own_line

        own = self.institution()
        return sheet_of(
            offer.text,
            offer.terms,
            self.trusted_institutions.names(),
            url=offer.invitation.url,
            slot=offer.invitation.slot,
            you=None if own is None else own_line(own.name, own.key),
        )

    def accept(
        self,
        invitation: str,
        policy: Policy,
        offer: Offer | None = None,
        sheet: str | None = None,
    ) -> Policy:
        """Return the policy with every risk of an invitation accepted.

        A party that joined is not asked again.

        offer: that of the invitation, where it is known.
        sheet: SHA-256 of the sheet that was read and accepted; the person here is asked
            by default, unless the policy accepts every risk.

        Raises RiskNotAccepted if it is another sheet, or one is not accepted, or nobody
            is there to be asked.
        Raises CoterieError if the policy refuses the terms whatever is accepted: nobody
            is asked then.
        """
        parsed = Invitation.parse(invitation)
        stored = self.stored(parsed.session, parsed.slot)
        if stored.exists:
            policy = policy.accept_risks(stored.load_identity().accepted_risks)
        if stored.has_joined and sheet is None:
            return policy
        offer = offer or self.offer(invitation, policy)
        terms = offer.terms
        left = policy.not_accepted(terms)
        everything = policy.accept_risks(left)
        everything.check_terms(terms)
        if sheet is not None:
            self._check_sheet(offer, sheet)
            if stored.exists and stored.consents.given is None:
                stored.consents.give()
        elif left and self.asker is None:
            raise RiskNotAccepted(f"{len(left)}: {', '.join(left)}.")
        elif left and self.asker is not None:
            self.asker.accept(self.sheet(offer))
        # what every session has goes into the policy: nobody is asked again
        always = {session_risks.BY_DESIGN} & read_policy(self.path).not_accepted(
            terms
        ).keys()
        remember(self.path, always, parsed.terms, now())
        return everything

    def _check_sheet(self, offer: Offer, sheet: str) -> None:
        """Refuse a sheet that is not the one of the offer."""
        from coterie_pages.views.terms_sheet import consent_digest

        if sheet.strip().lower() != consent_digest(offer.text, offer.terms):
            raise RiskNotAccepted(
                "Another sheet was accepted than the one of these terms."
            )

    def join(
        self,
        invitation: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
    ) -> Party:
        """Return the party of an invitation, whose terms were accepted."""
        parsed = Invitation.parse(invitation)
        stored = self.stored(parsed.session, parsed.slot)
        with ExitStack() as opened:
            analyst = opened.enter_context(self.connect(parsed.url))
            member = Party.join(
                invitation,
                policy=policy,
                home=self.path,
                entropy=self.entropy,
                analyst=analyst,
                choices=choices,
                asker=self.asker,
                safety_number=self.safety_number,
                confirmed_with=self.confirmed_with,
                accept_moved=self.moved,
            )
            if stored.consents.given is None and stored.consents.withdrawn_at is None:
                stored.consents.give()
            opened.pop_all()  # the party closes it from now on
        return member

    def resume(
        self,
        session: str,
        slot: str,
        policy: Policy,
        choices: Mapping[str, Any] | None = None,
    ) -> Party:
        """Return the party that is kept on this disk."""
        kept = self.stored(session, slot).load_identity()
        return self.join(kept.invitation, policy, choices)

    def withdraw_consent(self, session: str, slot: str) -> None:
        """Take back the yes to the sheet.

        A party that runs asks again before the next one, or stops where nobody is there.
        """
        stored = self.stored(session, slot)
        stored.load_identity()
        stored.consents.withdraw()

    def run(
        self,
        member: Party,
        rows: TableSpec,
        outputs: Outputs,
        *,
        on_warning: Callable[[str], None] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Take part with a table until there are labels, and write them.

        on_warning: called with what looks wrong in the table's rows.
        on_progress: called with the session's status whenever something moved.
        """
        outputs.check(member.stored)
        rows = self.map_rows(member.stored, rows)
        with member.tell_refusals():
            data = rows.open(member.slot_fields)
        with member.stored.lock():
            member.keep_mapping(rows.table_mapping, data)
        if on_warning is not None:
            for sentence in row_warnings(member.terms, member.invitation.slot, data):
                on_warning(sentence)
        result = member.run(data, on_progress=on_progress)
        outputs.write(member, result, data)
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
        """Return new rows with the labels of a session whose result is kept here.

        choices: what this home decides alone, as for :meth:`run`.
        agree: called where the rows look like other units, unless the choices allow it.

        Raises NotReady if no result is kept.
        Raises GuardRefused if the terms release nothing that labels new rows, or the
            rows look like other units and nobody agrees.
        """
        choices = choices or {}
        allowed = bool(choices.get(OTHER_UNITS))
        with self.resume(session, slot, Policy()) as member:
            check_choices(member.terms.protocol.name, choices)
            result = member.result()
            result.check_labels_new_rows()
            own = rows.table_mapping or member.stored.mappings.for_new_rows()
            data = rows.with_mapping(own).open(member.slot_fields, result.columns)
            return result.predict(data, agree=(lambda _: True) if allowed else agree)

    def labels_new_rows(self, session: str, slot: str) -> bool:
        """Return whether the result that is kept of a session labels new rows."""
        with self.resume(session, slot, Policy()) as member:
            return member.result().labels_new_rows

    def find_unlinked(
        self, member: Party, rows: TableSpec, result: Result
    ) -> list[UnlinkedRow]:
        """Return the own rows that match keys linked to nobody, if these link rows."""
        from party_sdk.tables.linkage import unlinked_rows

        params = check_terms(member.terms)
        if not member.slot_fields.match_columns:
            return []
        data = self.map_rows(member.stored, rows).open(member.slot_fields)
        return unlinked_rows(params, data, result.labels)

    def map_rows(self, stored: PartySession, rows: TableSpec) -> TableSpec:
        """Return rows under the mapping that counts: the one kept here, or a new one.

        Raises GuardRefused if a new one is named and nobody agrees to it.
        """
        mapping = stored.mappings.choose(rows.table_mapping, self._agree)
        return rows.with_mapping(mapping)

    def keep_mapping(self, member: Party, mapping: TableMapping) -> None:
        """Keep a mapping for a session, before its table is read."""
        counts = member.stored.mappings.choose(mapping, self._agree)
        with member.stored.lock():
            member.keep_mapping(counts)

    def _agree(self, change: MappingChange) -> bool:
        if self.new_mapping:
            return True
        return self.asker is not None and self.asker.change_mapping(change)

    def decline(self, invitation: str, reason: str) -> None:
        """Tell the coordinator why this home does not join."""
        parsed = Invitation.parse(invitation)
        with self.connect(parsed.url) as analyst:
            decline(analyst, parsed.code, reason)

    def leave(
        self,
        session: str,
        slot: str,
        said: str,
        reason: StopReason = StopReason.LEFT,
    ) -> bool:
        """Stop a party for good; return whether the others are told.

        said: why, for the coordinator where the slot is free.
        reason: the word that the others read where it is taken.
        """
        kept = self.stored(session, slot).load_identity()
        return self.withdraw(kept.invitation, said, reason)

    def withdraw(
        self, invitation: str, said: str, reason: StopReason = StopReason.LEFT
    ) -> bool:
        """Do the same by an invitation; decline it where no party is here yet."""
        parsed = Invitation.parse(invitation)
        stored = self.stored(parsed.session, parsed.slot)
        if not stored.exists:
            self.decline(invitation, said)
            return True
        with self.connect(parsed.url) as analyst:
            return leave(stored, analyst, said, parsed.code, reason)

    @contextmanager
    def receivers(self, session: str, slot: str) -> Iterator[OwnReceivers]:
        """Open the addresses at which a party is told."""
        stored = self.stored(session, slot)
        url = Invitation.parse(stored.load_identity().invitation).url
        with self.connect(url) as analyst:
            yield OwnReceivers.of_party(stored, analyst)

    # What is stored here; reports are imported where they are read

    def find(self, session: str, slot: str) -> PartySession:
        """Return what is kept of a session, or what outlived it where it was forgotten.

        Raises NotReady if nothing is kept.
        """
        stored = self.stored(session, slot)
        found = stored if stored.exists else stored.forgotten()
        if found is None:
            stored.load_identity()  # which says so
            return stored
        return found

    def one_of(self, named: str, slot: str | None) -> PartySession:
        """Return what is kept of an invitation, or of a session and a slot.

        Raises InvalidParameters if this home sat at several slots of the session, and
            none is named.
        """
        if "#" in named:
            parsed = Invitation.parse(named)
            return self.find(parsed.session, parsed.slot)
        sat = slots_of(self.path, named)
        if slot is None and len(sat) > 1:
            raise InvalidParameters(f"Name one of the slots: {', '.join(sat)}.")
        return self.find(named, slot or (sat[0] if sat else "?"))

    def report(self, stored: PartySession, rows: TableSpec | None = None) -> RunReport:
        """Return the report of a party that is kept here, or was before it was forgotten.

        rows: the party's table, to draw its rows.
        """
        from coterie_pages.models import RunReport
        from party_sdk.reports.run_reports import run_report

        written = stored.report
        if written is not None:
            if rows is not None:
                raise NotReady("Labels were forgotten: rows can no longer be drawn.")
            return RunReport.model_validate_json(written)
        with self.resume(stored.session, stored.slot, Policy()) as member:
            columns = stored.load_identity().columns
            data = None
            if rows is not None:
                rows = self.map_rows(stored, rows)
                data = rows.open(member.slot_fields, columns)
            return run_report(member, self.path, data=data)

    def manifest(self, stored: PartySession) -> dict[str, Any]:
        """Return the manifest of a session that is kept here, as JSON values.

        Raises NotReady once labels were forgotten.
        """
        from party_sdk.reports.run_reports import run_manifest

        with self.resume(stored.session, stored.slot, Policy()) as member:
            return run_manifest(member)

    def forget(self, session: str, slot: str, *, everything: bool = False) -> None:
        """Delete what is kept of a session; the log and a report stay by default.

        Raises NotReady if nothing is kept.
        """
        stored = self.stored(session, slot)
        if everything:
            self.find(session, slot)
            stored.forget(everything=True)
            return
        stored.load_identity()
        report = None
        with suppress(CoterieError):  # what cannot be read has to go all the same
            report = self.report(stored).model_dump_json().encode()
        stored.forget(report)

    def sign_log(self, stored: PartySession) -> SignedLog:
        """Return what left a party, signed by the institution that joined."""
        own = Meeting(self.path, self.entropy).institution
        member = stored.member
        if member is None or member.identity != own.key:
            raise NotReady("This party joined as another institution than this home's.")
        return sign_ledger(own, stored.session, stored.slot, stored.ledger.lines)

    def roster(self, session: str, slot: str) -> Roster | None:
        """Return who takes part, if that has been agreed upon."""
        agreement = self.find(session, slot).agreement
        if agreement is None:
            return None
        return Roster.of(agreement, TrustedInstitutions(self.path), slot)
