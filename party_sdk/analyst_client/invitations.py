"""Invitations: one string with everything that a party needs to join.

The analyst's address stands before the ``#``. After it come session, slot, the one-time
code, which is sent to the analyst, and the session secret, which is not: no HTTP client
sends the part of an address after ``#``. At the end are the digest of the terms, the
coordinator's public key and its signature, so the analyst cannot change the terms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from clustering_protocols.common.errors import InvitationUnreadable, KeyNotAuthentic
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.terms.roster_entries import check_terms_signature
from party_sdk.home.addresses import address_advice

_VERSION = "coterie-2"
_NAME = NAME_PATTERN.strip("^$")
_FORM = re.compile(
    rf"(?P<url>https?://[^\s#]+)#{_VERSION}/(?P<session>{_NAME})/"
    rf"(?P<slot>{_NAME})/(?P<code>[\w-]+)/(?P<secret>[0-9a-f]{{64}})/"
    r"(?P<terms>[0-9a-f]{64})/(?P<coordinator>[0-9a-f]{64})/(?P<signature>[0-9a-f]{128})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A parsed invitation."""

    url: str
    session: str
    slot: str
    code: str = field(repr=False)
    secret: bytes = field(repr=False)
    terms: str  # their digest
    coordinator: str
    signature: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Return the invitation in a text, such as a mail that wrapped its lines.

        Raises InvitationUnreadable if the text has no invitation, or a wrong signature.
        """
        before, mark, after = text.rpartition(f"#{_VERSION}/")
        words = before.split()
        address = words[-1].lstrip("<(\"'") if words else ""
        match = _FORM.match(address + mark + re.sub(r"[\s>]+", "", after))
        if match is None:
            raise InvitationUnreadable(
                "This is not an invitation; it has the form "
                f"https://analyst#{_VERSION}/session/slot/code/secret/terms/"
                "coordinator/signature."
            )
        if problem := address_advice(match["url"]):
            raise InvitationUnreadable(f"The invitation's URL is invalid. {problem}")
        try:
            check_terms_signature(
                match["coordinator"], match["terms"], match["signature"]
            )
        except KeyNotAuthentic:
            raise InvitationUnreadable(
                "This invitation does not match its coordinator's signature."
            ) from None
        fields: dict[str, Any] = match.groupdict()
        return cls(**fields | {"secret": bytes.fromhex(match["secret"])})

    def __str__(self) -> str:
        """Return the text for the party, to be sent where the analyst cannot read it."""
        slot_part = f"{self.session}/{self.slot}/{self.code}/{self.secret.hex()}"
        terms_part = f"{self.terms}/{self.coordinator}/{self.signature}"
        return f"{self.url}#{_VERSION}/{slot_part}/{terms_part}"
