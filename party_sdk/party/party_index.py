"""The sessions of a home: where each stands, as this disk tells, and what is next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import SessionState
from party_sdk.party.folder import PartyFolder
from party_sdk.party.leave import has_left


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptParty:
    """A party that was in a session from this home.

    session, slot, title: the title is empty where the terms were forgotten.
    state: in a few words.
    following: the command that continues, or what else to do; empty where nothing is left
        to do.
    """

    session: str
    slot: str
    title: str
    state: str
    following: str


def kept_parties(home: Path) -> Iterator[KeptParty]:
    """Yield the parties of a home by session and slot; the analyst is not asked."""
    for path in sorted((home / "parties").glob("*/*")):
        folder = PartyFolder(home, path.parent.name, path.name)
        if folder.exists or folder.forgotten() is not None:
            yield _read_party(folder)


def _read_party(folder: PartyFolder) -> KeptParty:
    title = ""
    try:
        if folder.exists:
            title = read_terms(folder.load_identity().terms.encode()).about.title
        state, following = _describe_state(folder)
    except (CoterieError, ValueError):
        state, following = "cannot be read", "use the release that wrote it"
    return KeptParty(
        session=folder.session,
        slot=folder.slot,
        title=title,
        state=state,
        following=following,
    )


def _describe_state(folder: PartyFolder) -> tuple[str, str]:
    """Return where a party stands, and what comes next."""
    where = f"{folder.session} {folder.slot}"
    resume = f"coterie party run {where} --data FILE"
    if not folder.exists:
        return "forgotten", f"coterie party report {where}"
    if folder.load_result() is not None:
        return SessionState.COMPLETED.value, f"coterie party report {where}"
    if ended := folder.load_identity().ended:
        return ended, f"coterie party forget {where}"
    journal = folder.load_standing().journal
    if has_left(folder):
        return "left", f"coterie party forget {where}"
    if journal.stopped:
        return "stopped: the analyst broke the rules", "tell the coordinator"
    if folder.is_held:
        return "you refused a contribution", f"{resume} --confirm"
    if not folder.has_joined:
        return "accepted, not joined", resume
    if folder.load_agreement() is None:
        return "joined, others awaited", resume
    return f"round {journal.round} answered", resume
