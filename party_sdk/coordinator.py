"""Coordinating a session: open it, invite, watch."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from clustering_protocols import engine, hash_chain, registry
from clustering_protocols.contract import Params
from clustering_protocols.enrolment import session_secret
from clustering_protocols.errors import AuditBroken, InvalidParameters, NotReady
from clustering_protocols.records import Record
from clustering_protocols.terms import NAME_PATTERN, About, Deadlines, Guards, Layout
from party_sdk._files import default_home, private_folder, write_private
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient, SessionStatus, end_of
from party_sdk.invitations import Invitation

_WATCH_SECONDS = 1.0


class _Kept(BaseModel):
    """What a coordinator keeps of a session: the session secret comes from it."""

    url: str
    entropy: str

    def __repr__(self) -> str:
        return "<Kept>"


class Coordinator:
    """Opens sessions on one analyst.

    Parameters
    ----------
    url : str
    key : str
        A coordinator's key (``coterie key create``).
    home : Path, optional
        Where to keep the sessions' secrets; ``$COTERIE_HOME`` or ``~/.coterie``.
    entropy : bytes, optional
        32 bytes from which session secrets follow; from the operating system by
        default.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        home: Path | None = None,
        entropy: bytes | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._url = url
        self.entropy = entropy
        self._home = (home or default_home()) / "sessions"
        self._transport = transport or Transport(url)
        self._client = AnalystClient(self._transport, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._transport.close()

    def create_session(
        self,
        about: str | About,
        params: Params,
        layout: Layout,
        *,
        session_id: str | None = None,
        seed: int | None = None,
        deadlines: Deadlines | None = None,
        guards: Guards | None = None,
    ) -> CoordinatedSession:
        """Open a session.

        Parameters
        ----------
        about : str or About
            For people: a title, or with it purpose, legal basis and contact.
        params : Params
            Of any protocol, e.g. ``DataCollaboration(n_clusters=3)``.
        layout : Layout
            Which parties there are; ``Lattice(2, 2)`` for a regular one.
        session_id : str, optional
            Made from the title by default. Creating it again with the same terms
            changes nothing.
        seed : int, optional
            Of the analyst's random starts; drawn by default.
        """
        about = About(title=about) if isinstance(about, str) else about
        session_id = session_id or _id_from(about.title)
        if not re.fullmatch(NAME_PATTERN, session_id):
            raise InvalidParameters(
                f"{session_id!r} is no session id: use a-z, 0-9, '.', '_' and '-'."
            )
        body = {
            "about": about.model_dump(mode="json"),
            "protocol": {
                "name": registry.name_of(params),
                "params": params.model_dump(mode="json"),
            },
            "layout": layout.model_dump(mode="json"),
            "seed": secrets.randbits(52) if seed is None else seed,
            "deadlines": (deadlines or Deadlines()).model_dump(mode="json"),
            "guards": (guards or Guards()).model_dump(mode="json"),
        }
        self._keep(session_id)
        self._client.put_session(session_id, body)
        return self.session(session_id)

    def session(self, session_id: str) -> CoordinatedSession:
        """Return a session that was opened before."""
        return CoordinatedSession(session_id, self._client, self._home)

    def sessions(self) -> list[dict[str, object]]:
        """Return all sessions of this key, a line each."""
        found, following = self._client.sessions()
        while following is not None:
            page, following = self._client.sessions(following)
            found += page
        return found

    def _keep(self, session_id: str) -> None:
        path = private_folder(self._home) / f"{session_id}.json"
        if not path.exists():
            entropy = self.entropy or secrets.token_bytes(32)
            kept = _Kept(url=self._url, entropy=entropy.hex())
            write_private(path, kept.model_dump_json().encode())


class CoordinatedSession:
    """One session, seen by its coordinator."""

    def __init__(self, session_id: str, client: AnalystClient, home: Path) -> None:
        self.id = session_id
        self._client = client
        self._home = home

    def invite(self, slots: Sequence[str] | None = None) -> dict[str, str]:
        """Return a new invitation per slot, by default for all that are free.

        Hand them over on a channel that the analyst cannot read: each holds the
        session secret, with which parties know each other's keys.
        """
        kept = self._kept()
        secret = session_secret(bytes.fromhex(kept.entropy), self.id)
        return {
            slot: str(
                Invitation(
                    url=kept.url, session=self.id, slot=slot, code=code, secret=secret
                )
            )
            for slot, code in self._client.invite(self.id, slots).items()
        }

    def status(self) -> SessionStatus:
        """Return where the session stands."""
        return self._client.session(self.id)

    def wait(
        self, on_progress: Callable[[SessionStatus], None] | None = None
    ) -> SessionStatus:
        """Return once the session is complete; raise what ended it otherwise."""
        last: SessionStatus | None = None
        while True:
            status = self.status()
            if on_progress is not None and status != last:
                on_progress(status)
            if status.state == "completed":
                return status
            if status.over:
                raise end_of(status.state, status.reason, status.detail)
            last = status
            time.sleep(_WATCH_SECONDS)

    def summary(self) -> Record:
        """Return what the terms let the coordinator read of the result."""
        agreement = self._client.agreement(self.id)
        return engine.read_result(agreement, self._client.result(self.id))

    def audit(self, receipts: Iterable[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Return who sent or received which digest when, after checking the chain.

        Parameters
        ----------
        receipts : iterable of mapping
            Entries of parties' ledgers: each receipt among them has to stand in the
            audit, under its number and with its digests.

        Raises
        ------
        AuditBroken
            If a line was changed, or is missing.
        """
        lines = self._client.audit(self.id)
        entries = list(hash_chain.read(lines))
        for receipt in receipts:
            if receipt.get("event") == "receipt":
                _check_receipt(receipt, lines, entries)
        return entries

    def cancel(self) -> SessionStatus:
        """End the session."""
        return self._client.cancel(self.id)

    def delete(self) -> None:
        """Remove all of it but its audit at the analyst; one that runs is cancelled."""
        self._client.delete(self.id)

    def _kept(self) -> _Kept:
        path = self._home / f"{self.id}.json"
        if not path.exists():
            raise NotReady(f"The secret of session {self.id!r} is not on this machine.")
        return _Kept.model_validate_json(path.read_bytes())


def _check_receipt(
    receipt: Mapping[str, Any],
    lines: Sequence[str],
    entries: Sequence[Mapping[str, Any]],
) -> None:
    number = receipt.get("sequence")
    if not isinstance(number, int) or not 1 <= number <= len(lines):
        raise AuditBroken(f"A receipt names line {number}; there are {len(lines)}.")
    same = ("round", "attempt", "digest")
    line, entry = lines[number - 1], entries[number - 1]
    is_there = hash_chain.digest(line) == receipt.get("entry")
    if not is_there or any(entry.get(name) != receipt.get(name) for name in same):
        raise AuditBroken(
            f"Line {number} is not the one of which a party has a receipt."
        )


def _id_from(title: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "session"
    return f"{slug}-{secrets.token_hex(4)}"
