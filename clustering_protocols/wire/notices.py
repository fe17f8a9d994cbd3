"""Who is told about a session, and how that went: asked for and answered as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, BaseModel, Field

MAX_ADDRESS: Final = 320  # characters


class Failure(StrEnum):
    """Why a notice did not arrive."""

    NOT_TAKEN = "not-taken"
    MAIL_SERVER = "mail-server"
    INTERNAL = "internal"


SENTENCES: Final[Mapping[str, str]] = {
    Failure.NOT_TAKEN: "The mail server does not take mail for this address.",
    Failure.MAIL_SERVER: "The analyst's mail server did not take the mail: ask its "
    "administrator.",
    Failure.INTERNAL: "The analyst failed: ask its administrator.",
}


class ReceiverAdded(BaseModel):
    """A receiver that is new."""

    id: str


class ReceiverLine(BaseModel):
    """A receiver of the caller, and how telling it went."""

    id: str
    address: str
    created_at: AwareDatetime
    sent: int = Field(description="Notices that arrived.")
    given_up: int = Field(description="Notices that are not tried again.")
    retrying: int = Field(description="Notices that are, after a failure.")
    failure: str | None = Field(description="Of the last notice that did not arrive.")


class Receivers(BaseModel):
    """The caller's receivers of a session.

    offered: whether the analyst sends mail.
    """

    offered: bool
    receivers: list[ReceiverLine]
