"""A party of this home, as its address names it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from clustering_protocols.common.errors import CoterieError, NotReady
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.terms.terms import Terms, read_terms
from party_sdk.admission.table_admission import agreed_in
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.desk.responses import Desk, desk_of
from party_sdk.supervisor import Order, PartyOrder, orders_in

if TYPE_CHECKING:
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.tables.mapping import TableMapping

PLACE: Final = "/parties/{session}/{slot}"
"""The address of a party below the root."""
_NAMED: Final = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class AddressedParty:
    """A party, with or without an order."""

    desk: Desk
    files: PartyOrder

    @property
    def session(self) -> str:
        """Return the id of its session."""
        return self.files.session

    @property
    def slot(self) -> str:
        """Return its slot."""
        return self.files.slot

    @property
    def address(self) -> str:
        """Return its address below the root."""
        return f"/parties/{self.session}/{self.slot}"

    @property
    def file_stem(self) -> str:
        """Return how the names of its files begin."""
        return f"{self.session}-{self.slot}"

    @property
    def order(self) -> Order | None:
        """Return its order, if it has one."""
        return self.files.order() if self.files.exists else None

    @property
    def invitation(self) -> Invitation:
        """Return its invitation, whichever way it came here."""
        order = self.order
        if order is not None:
            return Invitation.parse(order.invitation)
        return Invitation.parse(self.files.stored.load_identity().invitation)

    @property
    def has_accepted(self) -> bool:
        """Return whether its people have accepted the terms."""
        return self.files.stored.exists

    @property
    def labels(self) -> Path:
        """Return the file of labels that its order writes."""
        order = self.order
        named = None if order is None else order.labels
        return named or self.desk.home / "labels" / f"{self.file_stem}.csv"

    @property
    def has_result(self) -> bool:
        """Return whether there is a result, or what outlived it."""
        folder = self.files.stored
        return folder.forgotten() is not None or (
            folder.exists and folder.result is not None
        )

    @property
    def kept_mapping(self) -> TableMapping | None:
        """Return how the table is mended so far: as the order says, or the home keeps."""
        from party_sdk.tables.mapping import parse_mapping

        order = self.order
        if order is not None and order.table is not None and order.table.mapping:
            return parse_mapping(order.table.mapping.encode(), "mapping")
        folder = self.files.stored
        return folder.mappings.last() if folder.exists else None

    def mend(self, table: TableSpec) -> TableSpec:
        """Return a table by the mapping that holds, unless it names another."""
        if table.table_mapping is not None:
            return table
        return table.with_mapping(self.kept_mapping)

    def terms(self) -> Terms:
        """Return its terms."""
        return self.desk.own_home.offer(str(self.invitation)).terms

    def title(self) -> str:
        """Return how its session is called, as far as that is known here."""
        if self.has_accepted:
            return self.accepted_terms().title
        known = self.files.status().title if self.files.exists else ""
        return known or self.session

    @property
    def compares_runs(self) -> bool:
        """Return whether the coordinator chooses one of several numbers of clusters."""
        return self.has_accepted and self.accepted_terms().evaluation is not None

    def last_time(self) -> AddressedParty | None:
        """Return the party of this home whose table had the same variables, the latest."""
        own = _variables(self.terms(), self.slot)
        found = [
            AddressedParty(self.desk, files)
            for files in orders_in(self.desk.home)
            if files.session != self.session
            and files.stored.exists
            and files.order().table is not None
        ]
        found.sort(key=lambda each: each.files.status().placed_at, reverse=True)
        for each in found:
            with suppress(CoterieError):  # terms that this release cannot read
                if _variables(each.accepted_terms(), each.slot) == own:
                    return each
        return None

    def accepted_terms(self) -> Terms:
        """Return the terms that were accepted here, without asking the analyst."""
        return read_terms(self.files.stored.load_identity().terms.encode())


def _variables(terms: Terms, slot: str) -> tuple[object, ...]:
    """Return what a table has to hold to fit terms, as far as they say it."""
    dictionary = agreed_in(terms, slot).dictionary
    if dictionary is None:
        return terms.protocol.name, slot
    return dictionary.used.names, *(
        (each.type, each.unit) for each in dictionary.fields
    )


def kept_of(request: Request) -> AddressedParty:
    """Return the party that an address names; :class:`NotReady` if there is none."""
    desk = desk_of(request)
    session, slot = request.path_params["session"], request.path_params["slot"]
    for name in (session, slot):
        if not _NAMED.fullmatch(name):
            raise NotReady("Nothing is kept here under this address.")
    found = AddressedParty(desk, PartyOrder(desk.home, session, slot))
    folder = found.files.stored
    if not (found.files.exists or folder.exists or folder.forgotten() is not None):
        raise NotReady("Nothing is kept here under this address.")
    return found
