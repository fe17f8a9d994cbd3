"""The interface through which parties and coordinators call the analyst service.

Implementations use HTTP or memory. Every call is safe to repeat. A refused call raises
its :class:`~clustering_protocols.common.errors.CoterieError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, SessionOver
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.terms.agreements import Member
from clustering_protocols.wire.answers import (
    Preview,
    Receipt,
    ReceiverAdded,
    Receivers,
    SessionPage,
    SessionStatus,
)
from clustering_protocols.wire.states import SlotState, StopReason

LONG_POLL_SECONDS: Final = 20.0
"""The maximum time for which the analyst holds a request for a task open."""


def end_error(state: str, reason: str | None, detail: str | None) -> CoterieError:
    """Return the exception to raise for a session that ended without a result."""
    text = f"{detail} The session is over: {state}." if detail else f"It is {state}."
    try:
        return CoterieError.of(Problem.from_slug(reason or ""), text)
    except KeyError:  # the reason is missing, or defined by a newer release
        return SessionOver(text, state, reason)


class Analyst(Protocol):
    """The analyst as seen by a party; as a context manager, it closes its connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, including those shared with other callers."""

    def as_party(self, token: str) -> Analyst:
        """Return the same analyst, authenticated with a party's token."""

    def preview(self, code: str) -> Preview:
        """Return the terms and the slot of an invitation code without using the code up."""

    def join(self, code: str, member: Member, proof: str) -> str:
        """Take the slot of an invitation code, and return the party's token."""

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Report that a check or the operator has declined the invitation of a code."""

    def stop(self, session: str, reason: StopReason | None) -> None:
        """Report that this party has stopped, or with ``reason=None`` that it continues."""

    def session(self, session: str) -> SessionStatus:
        """Return the status of a session."""

    def agreement(self, session: str) -> bytes:
        """Return the agreement of a session as exact bytes."""

    def task(self, session: str, wait: float) -> bytes | None:
        """Return the open task, or None if there is none within ``wait`` seconds."""

    def contribute(
        self,
        session: str,
        round_: int,
        attempt: int,
        content: bytes,
        wait: float = 0,
        *,
        digest: str = "",
    ) -> tuple[Receipt, bytes | None]:
        """Send a contribution, and return its receipt and the next task or None.

        wait: the number of seconds for which the analyst may wait for the next task.
        digest: the SHA-256 of the content in hex; computed here if it is not given.
        """

    def result(self, session: str) -> bytes:
        """Return the result for this party as an encoded record."""

    def add_receiver(self, session: str, address: str) -> ReceiverAdded:
        """Register an email address for notifications, and return its id."""

    def receivers(self, session: str) -> Receivers:
        """Return the addresses that the caller has registered for notifications."""

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        """Remove an address. Repeating the call has no effect."""


class CoordinatedAnalyst(Analyst, Protocol):
    """The analyst as seen by a coordinator."""

    def as_coordinator(self, key: str) -> CoordinatedAnalyst:
        """Return the same analyst, authenticated with a coordinator's key."""

    def identity(self) -> str:
        """Return the analyst's signing key, as claimed by the analyst itself."""

    def put_session(self, session: str, body: Mapping[str, Any]) -> SessionStatus:
        """Open a session. Repeating the call has no effect."""

    def sessions(
        self, after: str = "", filters: Mapping[str, str] = MappingProxyType({})
    ) -> SessionPage:
        """Return one page of the list of sessions."""

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        """Return a one-time invitation code for each slot."""

    def choose(self, session: str, n_clusters: int) -> SessionStatus:
        """Select the run with ``n_clusters`` clusters as the result of the session."""

    def extend(self, session: str, deadline: datetime) -> SessionStatus:
        """Move the current deadline of a session."""

    def cancel(self, session: str, reason: str = "") -> SessionStatus:
        """Cancel a session."""

    def audit(self, session: str) -> tuple[list[str], str]:
        """Return all lines of a session's audit log, and the signature of the last."""

    def profiles(self, session: str) -> tuple[Profile, ...]:
        """Return the cluster profiles; empty unless the terms publish them to everybody."""

    def delete(self, session: str) -> None:
        """Delete a session except its audit log. Repeating the call has no effect."""
