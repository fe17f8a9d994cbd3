"""The party that the address of a request refers to."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from starlette.requests import Request

from clustering_protocols.common.errors import CoterieError, NotReady
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.terms.terms import Terms, read_terms
from coterie_pages.models import TermsSheet
from party_sdk.admission.table_admission import slot_fields_of
from party_sdk.admission.table_files import TableSpec
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.application.exports import can_preview_runs
from party_sdk.desk.responses import Desk, desk_of
from party_sdk.home.policy_files import read_policy
from party_sdk.party.participant import Offer
from party_sdk.supervisor.orders import Order, OrderedTable, PartyOrder, order_versions
from party_sdk.tables.mapping import TableMapping, parse_mapping

PARTY_PATH: Final = "/parties/{session}/{slot}"
"""The route of a party's pages, relative to the desk's root."""
_NAME: Final = re.compile(NAME_PATTERN)


class AddressedParty(PartyOrder):
    """A party of this home that an address refers to, with or without an order."""

    def __init__(self, desk: Desk, session: str, slot: str) -> None:
        super().__init__(desk.home, session, slot)
        self.desk = desk

    @property
    def address(self) -> str:
        """Return the path of the party's pages, relative to the desk's root."""
        return f"/parties/{self.session}/{self.slot}"

    @property
    def name(self) -> str:
        """Return the party's display name: its slot and the title of its session."""
        return f"{self.slot} in {self.title}"

    @property
    def file_stem(self) -> str:
        """Return the prefix of the file names of the party's downloads."""
        return f"{self.session}-{self.slot}"

    @property
    def current_order(self) -> Order:
        """Return the party's order or, if it has none, an order without a table."""
        if self.exists:
            return self.order()
        stored = self.stored
        return Order(
            invitation=stored.load_identity().invitation if stored.exists else ""
        )

    @property
    def table(self) -> OrderedTable | None:
        """Return the table that the party's order names, or None if there is none."""
        return self.current_order.table

    @property
    def invitation(self) -> Invitation:
        """Return the party's invitation, from its order or its stored session."""
        source = self.order() if self.exists else self.stored.load_identity()
        return Invitation.parse(source.invitation)

    @property
    def has_accepted(self) -> bool:
        """Return whether the party's operator has accepted the terms."""
        return self.stored.exists

    @property
    def labels_path(self) -> Path:
        """Return the path of the file to which the party writes its labels."""
        default = self.home / "labels" / f"{self.file_stem}.csv"
        return self.current_order.labels or default

    @property
    def has_result(self) -> bool:
        """Return whether a result, or a record of the forgotten session, is stored."""
        stored = self.stored
        return stored.last_forgotten() is not None or (
            stored.exists and stored.result is not None
        )

    @property
    def current_mapping(self) -> TableMapping | None:
        """Return the mapping in the party's order, otherwise the stored one, or None."""
        table = self.table
        if table is not None and table.mapping:
            return parse_mapping(table.mapping.encode(), "mapping")
        return self.stored.mappings.current_mapping() if self.stored.exists else None

    def with_mapping(self, table: TableSpec) -> TableSpec:
        """Return the table with the current mapping, unless it already has a mapping."""
        if table.options.mapping is not None:
            return table
        return table.with_mapping(self.current_mapping)

    def terms(self) -> Terms:
        """Fetch the terms of the party's session from the analyst."""
        return self.offer().terms

    def sheet(self) -> TermsSheet:
        """Fetch the terms sheet, which states the session's terms in words."""
        return self.desk.own_home.terms_sheet(self.offer())

    def offer(self) -> Offer:
        """Fetch the party's offer, unless the policy of the home forbids it."""
        policy = read_policy(self.home)
        return self.desk.own_home.fetch_offer(str(self.invitation), policy)

    @property
    def title(self) -> str:
        """Return the title of the party's session, or the session's id if it is unknown."""
        if self.has_accepted:
            return self.accepted_terms().title
        return (self.exists and self.status().title) or self.session

    @property
    def has_ended(self) -> bool:
        """Return whether the session has ended, or the party left or stopped for good.

        A party that left before it joined may still take part.
        """
        stored = self.stored
        if not stored.exists:
            return False
        journal = stored.journal
        may_return = journal.left and not stored.has_joined
        return bool(
            stored.load_identity().ended or (journal.stopped and not may_return)
        )

    @property
    def previews_runs(self) -> bool:
        """Return whether the party can look at its rows in each run of the session."""
        return self.has_accepted and can_preview_runs(self.accepted_terms())

    def find_earlier_party(self) -> AddressedParty | None:
        """Return the latest other party with a table of the same variables, or None."""
        variables = _variables(self.terms(), self.slot)
        parties = [
            AddressedParty(self.desk, *key)
            for key in order_versions(self.home)
            if key[0] != self.session
        ]
        parties = [p for p in parties if p.has_accepted and p.table is not None]
        parties.sort(key=lambda party: party.status().placed_at, reverse=True)
        for party in parties:
            with suppress(CoterieError):  # this release cannot read their terms
                if _variables(party.accepted_terms(), party.slot) == variables:
                    return party
        return None

    def accepted_terms(self) -> Terms:
        """Return the stored terms, without a request to the analyst."""
        return read_terms(self.stored.load_identity().terms.encode())


def _variables(terms: Terms, slot: str) -> tuple[object, ...]:
    dictionary = slot_fields_of(terms, slot).dictionary
    if dictionary is None:
        return terms.protocol.name, slot
    return dictionary.used.names, *(
        (field.type, field.unit) for field in dictionary.fields
    )


def requested_party(request: Request) -> AddressedParty:
    """Return the party in the request's path; raise :class:`NotReady` if there is none."""
    desk = desk_of(request)
    names = request.path_params["session"], request.path_params["slot"]
    if all(map(_NAME.fullmatch, names)):
        party = AddressedParty(desk, *names)
        if party.exists or party.has_accepted or party.has_result:
            return party
    raise NotReady("No party of this home has this address.")
