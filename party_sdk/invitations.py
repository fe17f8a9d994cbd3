"""Invitations: one string with everything that a party needs to join.

The analyst's address, and after the ``#`` what names the session: the one-time code,
which is sent to the analyst, and the session secret, which never is (the part of an
address after ``#`` is not sent by any HTTP client).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from clustering_protocols.errors import InvalidParameters
from clustering_protocols.terms import NAME_PATTERN

_VERSION = "coterie-1"
_NAME = NAME_PATTERN.strip("^$")
_FORM = re.compile(
    rf"(?P<url>https?://[^\s#]+)#{_VERSION}/(?P<session>{_NAME})/"
    rf"(?P<slot>{_NAME})/(?P<code>[\w-]+)/(?P<secret>[0-9a-f]{{64}})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A parsed invitation."""

    url: str
    session: str
    slot: str
    code: str = field(repr=False)
    secret: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Return the invitation in a string; :class:`InvalidParameters` if none is."""
        found = _FORM.fullmatch(text.strip())
        if found is None or not _is_address(found["url"]):
            raise InvalidParameters(
                "This is not an invitation; it has the form "
                f"https://analyst#{_VERSION}/session/slot/code/secret."
            )
        return cls(
            url=found["url"],
            session=found["session"],
            slot=found["slot"],
            code=found["code"],
            secret=bytes.fromhex(found["secret"]),
        )

    def is_of_same_analyst(self, other: Invitation) -> bool:
        """Return whether both name one address, however it is written."""
        return _place(self.url) == _place(other.url)

    def __str__(self) -> str:
        """Return the string to hand over, on a channel that the analyst cannot read."""
        named = f"{self.session}/{self.slot}/{self.code}/{self.secret.hex()}"
        return f"{self.url}#{_VERSION}/{named}"


def _place(url: str) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def _is_address(url: str) -> bool:
    try:
        return _place(url)[1] is not None
    except ValueError:  # a port that is none, a bracket that stays open
        return False
