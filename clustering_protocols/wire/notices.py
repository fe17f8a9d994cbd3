"""Who is told about a session, and how that went: asked for and answered as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, BaseModel, Field

MAX_ADDRESS: Final = 1000  # characters


class Way(StrEnum):
    """How somebody is told."""

    WEBHOOK = "webhook"
    MAIL = "mail"


class Failure(StrEnum):
    """Why a notice did not arrive."""

    UNKNOWN_HOST = "unknown-host"
    INTERNAL_ADDRESS = "internal-address"
    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    REDIRECTED = "redirected"
    NOT_TAKEN = "not-taken"
    MAIL_SERVER = "mail-server"
    INTERNAL = "internal"


SENTENCES: Final[Mapping[str, str]] = {
    Failure.UNKNOWN_HOST: "No host has this name.",
    Failure.INTERNAL_ADDRESS: "The name stands for an address that is not public, and "
    "the administrator allows none inside (COTERIE_NOTICES_INTERNAL).",
    Failure.UNREACHABLE: "Nobody answered there in time.",
    Failure.CERTIFICATE: "It shows a certificate that the analyst does not trust.",
    Failure.REDIRECTED: "It sends callers elsewhere; give the address where it ends.",
    Failure.NOT_TAKEN: "It answered, and did not take the notice.",
    Failure.MAIL_SERVER: "The analyst's mail server did not take the mail: ask its "
    "administrator.",
    Failure.INTERNAL: "The analyst failed: ask its administrator.",
}


class ReceiverAdded(BaseModel):
    """A receiver that is new; its secret is shown only here."""

    id: str
    secret: str | None = Field(
        repr=False, description="Of a webhook: what its signatures are checked with."
    )


class ReceiverLine(BaseModel):
    """A receiver of the caller, and how telling it went."""

    id: str
    way: Way
    address: str = Field(
        description="Of a webhook only the host: a path may be secret."
    )
    created_at: AwareDatetime
    sent: int = Field(description="Notices that arrived.")
    given_up: int = Field(description="Notices that are not tried again.")
    retrying: int = Field(description="Notices that are, after a failure.")
    failure: str | None = Field(description="Of the last notice that did not arrive.")


class Receivers(BaseModel):
    """The caller's receivers of a session, and which ways the analyst offers."""

    ways: list[Way]
    receivers: list[ReceiverLine]
