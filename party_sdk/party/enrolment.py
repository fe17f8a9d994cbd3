"""A table on its way to a slot: checked against what is kept, named in the roster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from clustering_protocols.catalogue import check_choices
from clustering_protocols.common.errors import GuardRefused, ShapeConflict
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import Arrival
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.session_risks import SHOWN_TOGETHER
from clustering_protocols.terms.terms import Terms, read_terms
from party_sdk.admission.table_admission import arrival_of
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.disclosures.intersections import Intersection
from party_sdk.home.policy import Policy
from party_sdk.party.folder import PartyFolder
from party_sdk.party.join import take_slot
from party_sdk.party.planned_use import use_of
from party_sdk.party.resume_checks import check_same_rows, data_digest, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A party takes its slot with a table.

    choices: what the party decides alone.
    institution: who signs the line of the roster.
    """

    invitation: Invitation
    folder: PartyFolder
    analyst: Analyst
    policy: Policy
    choices: Mapping[str, Any]
    institution: Institution

    @property
    def terms(self) -> Terms:
        """Return the terms that were accepted."""
        return read_terms(self.folder.load_identity().terms.encode())

    @property
    def allows_shown_together(self) -> bool:
        """Return whether the party allows what sessions show together."""
        given = (self.choices, self.folder.load_identity().choices)
        return any(bool(choices.get(SHOWN_TOGETHER)) for choices in given)

    def enrol(self, data: DataSource) -> Arrival:
        """Take the slot, unless it is taken already; return what arrives of the rows.

        The keys follow from entropy that is on disk already, so that a join whose
        response was lost is repeated with the same keys.
        """
        known = self.folder.load_identity()
        if known.token is None:  # what was accepted then is accepted
            self.policy.check_terms(self.terms)
        arrival, digest = (
            arrival_of(self.terms, self.folder.slot, data),
            data_digest(data),
        )
        self._check_table(arrival, digest)
        if known.token is not None:
            return arrival
        # first, so that a party that is known to have joined knows its rows, too
        self.folder.save_arrived(arrival.arrived)
        member = known.member or self._enter_roster(data, arrival)
        update = {
            "member": member,
            "data_digest": digest,
            "columns": tuple(data.columns),
            "choices": fingerprint(self.choices),
        }
        self.folder.save_identity(known.model_copy(update=update))
        try:
            self._take_slot(member)
        except (GuardRefused, ShapeConflict):
            # the slot is free still: other data may come
            self.folder.save_identity(known)
            raise
        return arrival

    def intersection(self, arrival: Arrival) -> Intersection:
        """Return what this session is among those that intersect the table's ids."""
        return self.folder.intersections.of(
            self.terms,
            self.folder.slot,
            arrival.data.ids,
            self.folder.use,
            self.policy.intersections_limit,
        )

    def _check_table(self, arrival: Arrival, digest: str) -> None:
        """Refuse rows that may not take part, or are not those that joined."""
        terms, data = self.terms, arrival.data
        self.policy.check_rows(terms, data.n_rows)
        check_choices(terms.protocol.name, self.choices)
        self.folder.shown.check(
            use_of(self.folder, terms, data.columns),
            data,
            terms.described_names(self.folder.slot),
            allowed=self.allows_shown_together,
        )
        check_same_rows(self.folder.load_identity().data_digest, digest)
        self.intersection(arrival).check()
        self.folder.spending.check(
            digest,
            self.folder.use,
            check_terms(terms).epsilon_per_person,
            self.policy.epsilon_total,
        )

    def _enter_roster(self, data: DataSource, arrival: Arrival) -> Member:
        """Return this party's line of the roster."""
        identity = self.folder.load_identity()
        return roster_entries.enrol(
            self.invitation.secret,
            identity.terms.encode(),
            self.folder.slot,
            bytes.fromhex(identity.entropy),
            self.institution,
            n_rows=arrival.data.n_rows,
            n_columns=len(self.terms.columns(self.folder.slot, data.columns)),
        )

    def _take_slot(self, member: Member) -> None:
        line = member.model_dump_json().encode()
        self.folder.ledger.note_joining(sha256(line).hexdigest())
        identity = self.folder.load_identity()
        entropy = bytes.fromhex(identity.entropy)
        token = take_slot(self.analyst, self.invitation, entropy, member)
        self.folder.save_identity(identity.model_copy(update={"token": token}))
