"""All parties of a session in this process: the SDK as it is, a thread each."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx
import sqlalchemy as sa
from support.in_process import Api, ByHand, Wire

from analyst_service.blobs import FileBlobStore
from analyst_service.models import Contribution
from clustering_protocols import simulation
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract import Params
from clustering_protocols.engine import packets
from clustering_protocols.terms.schema import Schema
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from coterie import Policy

SESSION = "s-sitting"
"""One name for all sittings: equal parties draw equal numbers."""
_ROUND_SECONDS = 60


class Upload(NamedTuple):
    """What the analyst has stored of a party, and where it belongs."""

    round: int
    attempt: int
    slot: str
    stage: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a party ended: with labels; or with an error, and how its next run did."""

    labels: list[int] | None = None
    error: CoterieError | None = None
    again: CoterieError | None = None
    n_sent_again: int = 0


@dataclass(frozen=True, kw_only=True)
class Sitting:
    """What came of a session.

    open: (round, attempt); the last that was opened.
    """

    endings: dict[str, Ending]
    uploads: set[Upload]
    open: tuple[int, int]

    def before(self, round_: int, attempt: int) -> set[Upload]:
        """Return what was uploaded before an attempt of a round."""
        return {u for u in self.uploads if (u.round, u.attempt) < (round_, attempt)}


def _hide_stop(request: httpx.Request) -> httpx.Response | None:
    """Answer as an analyst that lies, which tells nobody that a party stopped."""
    is_stop = request.url.path.endswith("/stopped")
    return httpx.Response(204, request=request) if is_stop else None


def sit(
    api: Api,
    params: Params,
    parts: simulation.Split,
    home: Path,
    *,
    named: bool = False,
    dictionary: Sequence[Schema] | None = None,
    hides_stops: bool = True,
) -> Sitting:
    """Run a session to where every party has ended.

    A party that stops runs once more while the session is open still, as its operator
    would have it; others that wait for it wait to the deadline of the round. ``named``:
    the terms say which institution sits where. ``hides_stops``: the analyst keeps from
    the others that one of them stopped.
    """
    session = api.open(
        params,
        parts,
        session=SESSION,
        named=named,
        deadlines={"round": _ROUND_SECONDS},
        dictionary=dictionary and [s.model_dump(mode="json") for s in dictionary],
    )
    endings: dict[str, Ending] = {}

    def end(slot: str) -> None:
        endings[slot] = _ending(
            api, session, slot, home / slot, hides_stops=hides_stops
        )

    with ThreadPoolExecutor(len(parts.layout.slots)) as pool:
        running = [pool.submit(end, slot) for slot in parts.layout.names]
        while not all(each.done() for each in running):
            _end_waiting(api, session, set(endings))
            time.sleep(0.1)
    for each in running:
        each.result()
    status = SessionStatus.model_validate(session.status)
    return Sitting(
        endings=endings,
        uploads=_uploads(api, session),
        open=(status.round, status.attempt),
    )


def _end_waiting(api: Api, session: ByHand, ended: set[str]) -> None:
    """Let time run out where all that a round waits for have ended."""
    status = SessionStatus.model_validate(session.status)
    awaited = set(status.awaited_slots)
    if status.state is SessionState.COLLECTING and awaited and awaited <= ended:
        api.clock.forward(_ROUND_SECONDS)


def _ending(
    api: Api, session: ByHand, slot: str, home: Path, *, hides_stops: bool
) -> Ending:
    wire = api.wire()
    if hides_stops:
        wire.before = _hide_stop
    try:
        return Ending(labels=_run(wire, session, slot, home))
    except CoterieError as error:
        first, again = error, None
    wire.requests.clear()
    try:
        _run(wire, session, slot, home)
    except CoterieError as error:
        again = error
    n_sent = len(wire.sent("/contribution"))
    return Ending(error=first, again=again, n_sent_again=n_sent)


def _run(wire: Wire, session: ByHand, slot: str, home: Path) -> list[int]:
    risks = frozenset(json.loads(session.drawn)["risks"])
    policy = Policy(accepted_risks=risks, least_known=0)
    entropy = session.keys[slot]
    with session.accept(slot, home, wire, policy=policy, entropy=entropy) as party:
        labels: list[int] = party.run(session.parts.data[slot]).labels.tolist()
    return labels


def _uploads(api: Api, session: ByHand) -> set[Upload]:
    blobs = FileBlobStore(api.service.settings.blob_location.folder)
    of = Contribution
    query = sa.select(of.round, of.attempt, of.slot, of.digest, of.content).where(
        of.session_id == session.id
    )
    with api.service.database.engine.connect() as connection:
        rows = connection.execute(query).all()
    found = set()
    for row in rows:
        packet = packets.parse(row.content or blobs.map(row.digest))
        stage, kind = packet.address.stage, packet.header.record["kind"]
        found.add(Upload(row.round, row.attempt, row.slot, stage, kind))
    return found
