"""Invitations: one string with everything that a party needs to join.

The analyst's address, and after the ``#`` what names the session: the one-time code,
which is sent to the analyst, and the session secret, which never is (the part of an
address after ``#`` is not sent by any HTTP client). Then the digest of the terms, the
coordinator's public key, and the signature with which the coordinator stands for them:
terms that the analyst has changed do not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clustering_protocols.common.errors import InvitationUnreadable, KeyNotAuthentic
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.terms.roster_entries import check_terms_signature
from party_sdk.home.addresses import are_same, mistaken

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
        """Return the invitation in a string, such as a mail that has wrapped it.

        Raises InvitationUnreadable if it is none, or the coordinator did not sign what
            it says of the terms.
        """
        before, mark, after = text.rpartition(f"#{_VERSION}/")
        words = before.split()
        address = words[-1].lstrip("<(\"'") if words else ""
        found = _FORM.match(address + mark + re.sub(r"[\s>]+", "", after))
        if found is None:
            raise InvitationUnreadable(
                "This is not an invitation; it has the form "
                f"https://analyst#{_VERSION}/session/slot/code/secret/terms/"
                "coordinator/signature."
            )
        if wrong := mistaken(found["url"]):
            raise InvitationUnreadable(f"The invitation's address is none. {wrong}")
        try:
            check_terms_signature(
                found["coordinator"], found["terms"], found["signature"]
            )
        except KeyNotAuthentic:
            raise InvitationUnreadable(
                "This is not an invitation as its coordinator signed it."
            ) from None
        return cls(
            url=found["url"],
            session=found["session"],
            slot=found["slot"],
            code=found["code"],
            secret=bytes.fromhex(found["secret"]),
            terms=found["terms"],
            coordinator=found["coordinator"],
            signature=found["signature"],
        )

    def is_of_same_analyst(self, other: Invitation) -> bool:
        """Return whether both name one address, however it is written."""
        return are_same(self.url, other.url)

    def __str__(self) -> str:
        """Return the string to hand over, on a channel that the analyst cannot read."""
        named = f"{self.session}/{self.slot}/{self.code}/{self.secret.hex()}"
        signed = f"{self.terms}/{self.coordinator}/{self.signature}"
        return f"{self.url}#{_VERSION}/{named}/{signed}"
