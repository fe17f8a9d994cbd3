"""What an invitation is for: the exact text of its terms, and their sheet in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from clustering_protocols.errors import NotReady
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import digest, read_terms
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient
from party_sdk.identities import Acquaintances, OwnIdentity
from party_sdk.invitations import Invitation
from party_sdk.joining import signed_terms
from party_sdk.memory import PartyFolder

if TYPE_CHECKING:  # who asks what terms say shows no sheet
    from coterie_pages.models import TermsSheet


def offered_text(
    invitation: Invitation, home: Path, connected: Callable[[], Transport]
) -> bytes:
    """Return the exact text of an invitation's terms; as kept at home, once joined.

    Raises
    ------
    AgreementMismatch
        If the analyst shows other terms than the coordinator signed.
    CoterieError
        If it cannot be asked, or does not know the invitation.
    """
    folder = PartyFolder(home, invitation.session, invitation.slot)
    if folder.exists:
        kept = folder.load_identity().terms.encode()
        if digest(kept) == invitation.terms:
            return kept
    with connected() as transport:
        preview = AnalystClient(transport).preview(invitation.code)
    signed_terms(invitation, preview)
    return preview.terms.encode()


def offered_sheet(
    invitation: Invitation, text: bytes, home: Path, own: Institution | None
) -> TermsSheet:
    """Return the terms of an invitation in words.

    Parameters
    ----------
    home : Path
        Whose acquaintances count.
    own : Institution, optional
        Who reads them; None where no identity was made yet.
    """
    from coterie_pages.terms import sheet_of
    from party_sdk.run_reports import own_line

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
