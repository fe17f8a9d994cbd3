"""The calls of parties and coordinators to an analyst, over HTTP or in memory.

Each call may be repeated. A refusal raises its
:class:`~clustering_protocols.common.errors.CoterieError`.
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
"""How long the analyst may hold a request for a task."""


def end_error(state: str, reason: str | None, detail: str | None) -> CoterieError:
    """Return the exception for a session that ended without a result."""
    text = f"{detail} The session is over: {state}." if detail else f"It is {state}."
    try:
        return CoterieError.of(Problem.from_slug(reason or ""), text)
    except KeyError:  # no reason, or one of a newer release
        return SessionOver(text, state, reason)


class Analyst(Protocol):
    """An analyst as a party reaches it; as a context manager it closes its connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, including those of other callers."""

    def as_party(self, token: str) -> Analyst:
        """Return the same analyst, called with a party's token."""

    def preview(self, code: str) -> Preview:
        """Return the terms and slot of a code, without using the code up."""

    def join(self, code: str, member: Member, proof: str) -> str:
        """Take the slot of a code and return the party's token."""

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Report why the party of a code does not join: refused by a check, or declined."""

    def stop(self, session: str, reason: StopReason | None) -> None:
        """Report that the caller's party stopped; None: that it is no longer held."""

    def session(self, session: str) -> SessionStatus:
        """Return the status of a session."""

    def agreement(self, session: str) -> bytes:
        """Return the exact bytes of the agreement."""

    def task(self, session: str, wait: float) -> bytes | None:
        """Return the open task, or None if there was none for ``wait`` seconds."""

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
        """Send a contribution; return the receipt, and the next task if there is one.

        wait: seconds for which the analyst may wait for the next task.
        digest: SHA-256 (hex) of the content, if the caller knows it.
        """

    def result(self, session: str) -> bytes:
        """Return the caller's result."""

    def add_receiver(self, session: str, address: str) -> ReceiverAdded:
        """Register an address for notifications; return its id and secret."""

    def receivers(self, session: str) -> Receivers:
        """Return the caller's addresses."""

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        """Remove an address; repeating it changes nothing."""


class CoordinatedAnalyst(Analyst, Protocol):
    """An analyst as a coordinator reaches it."""

    def as_coordinator(self, key: str) -> CoordinatedAnalyst:
        """Return the same analyst, called with a coordinator's key."""

    def identity(self) -> str:
        """Return the public key with which the analyst claims to sign."""

    def put_session(self, session: str, body: Mapping[str, Any]) -> SessionStatus:
        """Open a session; repeating it changes nothing."""

    def sessions(
        self, after: str = "", filters: Mapping[str, str] = MappingProxyType({})
    ) -> SessionPage:
        """Return a page of sessions."""

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        """Return one-time codes by slot."""

    def choose(self, session: str, n_clusters: int) -> SessionStatus:
        """Choose the run that becomes the result."""

    def extend(self, session: str, deadline: datetime) -> SessionStatus:
        """Move the deadline of a session."""

    def cancel(self, session: str, reason: str = "") -> SessionStatus:
        """End a session."""

    def audit(self, session: str) -> tuple[list[str], str]:
        """Return all lines of a session's audit, and the signature of the last."""

    def profiles(self, session: str) -> tuple[Profile, ...]:
        """Return the profiles of the clusters, if everybody may read them."""

    def delete(self, session: str) -> None:
        """Remove all of a session but its audit; repeating it changes nothing."""
