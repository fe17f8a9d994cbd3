"""What parties and coordinators ask of an analyst, whatever carries the question.

A transport is one class with these calls, over HTTP or in memory. Each raises the
:class:`~clustering_protocols.common.errors.CoterieError` that belongs to a refusal, and
may be asked again.
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
"""For how long the analyst may hold a question of somebody who waits for a task."""


def end_of(state: str, reason: str | None, detail: str | None) -> CoterieError:
    """Return the exception of a session that ended without a result."""
    text = f"{detail} The session is over: {state}." if detail else f"It is {state}."
    try:
        return CoterieError.of(Problem.of_slug(reason or ""), text)
    except KeyError:  # none, or one of a newer release
        return SessionOver(text, state, reason)


class Analyst(Protocol):
    """An analyst as a party reaches it; a context manager that closes it."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close what carries the questions."""

    def as_party(self, token: str) -> Analyst:
        """Return the same analyst, seen with a party's token."""

    def preview(self, code: str) -> Preview:
        """Return what a code is for; nothing is used up."""

    def join(self, code: str, member: Member, proof: str) -> str:
        """Take the slot of a code and return the party's token."""

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Say why the party of a code does not join: refused by a check, or declined."""

    def stop(self, session: str, reason: StopReason | None) -> None:
        """Say that the caller's party stopped, or is held no more where no reason is."""

    def session(self, session: str) -> SessionStatus:
        """Return where a session stands."""

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

        wait: for how many seconds the analyst may wait for the next task.
        digest: SHA-256 (hex) of the content, where it is known.
        """

    def result(self, session: str) -> bytes:
        """Return the caller's result."""

    def add_receiver(self, session: str, address: str) -> ReceiverAdded:
        """Leave an address to be told at; return its id and secret."""

    def receivers(self, session: str) -> Receivers:
        """Return the caller's addresses."""

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        """Have an address told no more; repeating it changes nothing."""


class CoordinatedAnalyst(Analyst, Protocol):
    """An analyst as a coordinator reaches it."""

    def as_coordinator(self, key: str) -> CoordinatedAnalyst:
        """Return the same analyst, seen with a coordinator's key."""

    def identity(self) -> str:
        """Return the key under which the analyst says that it signs."""

    def put_session(self, session: str, body: Mapping[str, Any]) -> SessionStatus:
        """Open a session; repeating it changes nothing."""

    def sessions(
        self, after: str = "", filters: Mapping[str, str] = MappingProxyType({})
    ) -> SessionPage:
        """Return a page of sessions."""

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        """Return one-time codes by slot."""

    def choose(self, session: str, n_clusters: int) -> SessionStatus:
        """Choose the run that counts; return where the session stands."""

    def extend(self, session: str, deadline: datetime) -> SessionStatus:
        """Let a session wait longer; return where it stands."""

    def cancel(self, session: str, reason: str = "") -> SessionStatus:
        """End a session."""

    def audit(self, session: str) -> tuple[list[str], str]:
        """Return all lines of a session's audit, and the signature under the last."""

    def profiles(self, session: str) -> tuple[Profile, ...]:
        """Return what the clusters are like, where everybody may read it."""

    def delete(self, session: str) -> None:
        """Remove all of a session but its audit; repeating it changes nothing."""
