"""Invitations: a single URL that contains everything a party needs to join.

The part before the ``#`` is the analyst's address. HTTP clients never send the rest:
session, slot, one-time code, session secret, digest of the terms, and the coordinator's
public key and signature. The SDK sends the code, but never the secret. The signature
prevents the analyst from changing the terms.
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
    terms: str  # the SHA-256 of the terms, in hex
    coordinator: str
    signature: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Extract the invitation from a text, such as an email with wrapped lines.

        Raises InvitationUnreadable if there is no invitation, or its signature is
        invalid.
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
        """Return the invitation as text, which the analyst must not be able to read."""
        slot_part = f"{self.session}/{self.slot}/{self.code}/{self.secret.hex()}"
        terms_part = f"{self.terms}/{self.coordinator}/{self.signature}"
        return f"{self.url}#{_VERSION}/{slot_part}/{terms_part}"
