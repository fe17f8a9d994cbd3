"""A rehearsal: what would leave of a table, played at home before the order is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.errors import CoterieError
from clustering_protocols.house import SUMS_LIMIT
from coterie_pages.models.desk import Rehearsal, RehearsedRounds
from party_sdk.arriving import agreed_in
from party_sdk.desk.answers import bad, form_of, shown
from party_sdk.desk.kept import Kept, kept_of
from party_sdk.desk.own_choices import chosen_of, shown_choices
from party_sdk.desk.standing import leaving_of, said_of
from party_sdk.desk.tables import Chosen, fitted, table_page, typed_limits
from party_sdk.policy_files import read_policy

if TYPE_CHECKING:
    from party_sdk import rehearsing


def post_rehearsal(request: Request) -> Response:
    """Play the session with the table and made-up others; nothing is sent."""
    from party_sdk.rehearsing import rehearse

    kept = kept_of(request)
    chosen = Chosen.of(form_of(request), kept.desk.tables)
    try:
        terms = kept.terms()
        table = fitted(chosen.ordered(), terms, kept.slot).named()
        data = table.open(agreed_in(terms, kept.slot))
        choices = chosen_of(typed_limits(kept, chosen))
        found = rehearse(terms, kept.slot, data, _with_policy(kept, choices))
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    return shown(request, _page(kept, chosen, found))


def _with_policy(kept: Kept, choices: dict[str, Any]) -> dict[str, Any]:
    """Return choices with the share of the home's policy, where none was typed."""
    return {SUMS_LIMIT: read_policy(kept.desk.home).sums_limit, **choices}


def _page(kept: Kept, chosen: Chosen, found: rehearsing.Rehearsal) -> Rehearsal:
    rounds = tuple(
        RehearsedRounds(
            first=each.first,
            last=each.last,
            n=each.n,
            leaving=leaving_of(each.example),
            n_bytes=each.n_bytes,
        )
        for each in found.left
    )
    return Rehearsal(
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        path=chosen.path,
        csv=chosen.csv,
        ids=chosen.ids,
        columns=chosen.columns or (),
        notify=chosen.notify,
        choices=shown_choices(typed_limits(kept, chosen)),
        n_rows=found.n_rows,
        rounds=rounds,
        n_rounds=found.rounds,
        n_bytes=found.n_bytes,
        seconds=found.seconds,
        notes=dict(said_of(found.notes)),
        asks=found.asks,
    )
