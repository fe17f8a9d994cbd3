"""A coordinator and parties over HTTP in this process: the SDK as it is, a thread each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustering_protocols.contract import Params
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator, Party, Policy, Result
from party_sdk.coordinator.session import CoordinatedSession

if TYPE_CHECKING:
    from support.in_process import Api


class House:
    """Homes of a coordinator and of parties, beside an analyst.

    ``last`` are the parties that ran last. ``fixed``: all chance follows from fixed
    entropy, the name of the session, and the analyst; else everybody draws their own.
    """

    def __init__(self, api: Api, home: Path, *, fixed: bool = True) -> None:
        self.api, self.home, self.fixed = api, home, fixed
        self.last: dict[str, Party] = {}
        self.coordinator = Coordinator(
            "http://127.0.0.1",
            api.key(),
            home=self.home_of("coordinator"),
            analyst=api.connect(),
            entropy=bytes(32) if fixed else None,
        )

    def home_of(self, who: str) -> Path:
        """Return where somebody keeps their secrets."""
        return self.home / who

    def open(
        self, name: str, params: Params, layout: Layout, **more: Any
    ) -> CoordinatedSession:
        """Open a session."""
        return self.coordinator.create_session(
            "wards", params, layout, session_id=name, seed=1, **more
        )

    def parties(self, session: CoordinatedSession) -> dict[str, Party]:
        """Let all parties accept a session's risks."""
        invitations = session.invite()
        return {slot: self.party(session, invitations, slot) for slot in invitations}

    def party(
        self,
        session: CoordinatedSession,
        invitations: Mapping[str, str],
        slot: str,
        **rules: Any,
    ) -> Party:
        """Let a party accept a session's risks, with rules of its own."""
        accepted = frozenset(session.status().risks)
        number = list(invitations).index(slot)
        return Party.join(
            invitations[slot],
            policy=Policy(**{"accepted_risks": accepted, "least_known": 0, **rules}),
            home=self.home_of(slot),
            entropy=bytes([number]) * 32 if self.fixed else None,
            analyst=self.api.connect(),
        )

    def run(
        self, session: CoordinatedSession, tables: Sequence[Any], **how: Any
    ) -> dict[str, Result]:
        """Let all parties of a session bring their tables; return what they get."""
        parties = self.last = self.parties(session)
        with ThreadPoolExecutor(len(parties)) as pool:
            waiting = {
                slot: pool.submit(party.run, table, **how)
                for (slot, party), table in zip(parties.items(), tables, strict=True)
            }
            return {slot: each.result() for slot, each in waiting.items()}
