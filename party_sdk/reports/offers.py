"""What an invitation offers, as a sheet in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import NotReady
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.terms import read_terms
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.identities import Acquaintances, OwnIdentity

if TYPE_CHECKING:  # who asks what terms say shows no sheet
    from coterie_pages.models import TermsSheet


def offered_sheet(
    invitation: Invitation, text: bytes, home: Path, own: Institution | None
) -> TermsSheet:
    """Return the terms of an invitation in words.

    home: whose acquaintances count.
    own: who reads them; None where no identity was made yet.
    """
    from coterie_pages.views.terms_sheet import sheet_of
    from party_sdk.reports.run_reports import own_line

    return sheet_of(
        text,
        read_terms(text),
        Acquaintances(home).names(),
        url=invitation.url,
        slot=invitation.slot,
        you=None if own is None else own_line(own.name, own.key),
    )


def own_institution(home: Path) -> Institution | None:
    """Return who a home is; None where no identity was made yet."""
    try:
        return OwnIdentity(home).load()
    except NotReady:
        return None
