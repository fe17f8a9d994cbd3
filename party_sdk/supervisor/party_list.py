"""The parties of a home, those in the background among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.wire.states import OVER
from party_sdk.party.party_index import KeptParty, kept_parties
from party_sdk.supervisor.files import OrderFiles, orders_in
from party_sdk.supervisor.models import OrderState, OrderStatus
from party_sdk.supervisor.scheduler import find_supervisor


def all_parties(home: Path) -> Iterator[KeptParty]:
    """Yield each party by session and slot; of an order, where that stands."""
    found = {(each.session, each.slot): each for each in kept_parties(home)}
    is_served = find_supervisor(home) is not None
    for files in orders_in(home):
        key = (files.session, files.slot)
        found[key] = _describe_order(files, found.get(key), is_served=is_served)
    for key in sorted(found):
        yield found[key]


def _describe_order(
    files: OrderFiles, kept: KeptParty | None, *, is_served: bool
) -> KeptParty:
    try:
        status = files.status()
    except CoterieError:
        status = None
    where = f"{files.session} {files.slot}"
    blank = KeptParty(
        session=files.session,
        slot=files.slot,
        title="" if status is None else status.title,
        state="cannot be read",
        following="set COTERIE_PASSPHRASE_FILE, or use the release that wrote it",
    )
    if status is None:
        return kept or blank
    said = _state(status, is_served=is_served)
    if kept is not None and kept.state in OVER and status.state is OrderState.FAILED:
        return replace(kept, state=said)
    return replace(kept or blank, state=said, following=_suggest_command(status, where))


def _state(status: OrderStatus, *, is_served: bool) -> str:
    if status.state is OrderState.RUNNING and not is_served:
        return "interrupted: nothing runs in the background"
    place = f", round {status.round}" if status.round and not status.is_over else ""
    out = ", the analyst cannot be reached" if status.outage_since else ""
    why = f": {status.trouble.headline}" if status.trouble else ""
    return f"{status.state.value}{place}{out}{why}"


def _suggest_command(status: OrderStatus, where: str) -> str:
    match status.state:
        case OrderState.WAITING:
            return f"coterie party answer {where}"
        case OrderState.COMPLETED:
            return f"coterie party report {where}"
        case OrderState.FAILED | OrderState.DECLINED:
            return f"coterie party order {where} --data FILE"
        case _:
            return "coterie party serve"
