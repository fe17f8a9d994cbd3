"""Each number of clusters over the own rows, before the coordinator chooses one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from coterie_pages.models.own_runs import OwnRunsPage
from party_sdk.desk.party.addressed_party import kept_of
from party_sdk.desk.party.order_pages import at_work
from party_sdk.desk.responses import bad, render_page


def get_runs(request: Request) -> Response:
    """Show sizes and profile of the own rows in each run; nothing is sent."""
    from party_sdk.application.exports import look_at_runs

    kept = kept_of(request)
    order = kept.order
    if order is None or order.table is None:
        raise NotReady("The desk knows no table of this party yet: name it first.")
    table, folder = order.table.to_named_table(), kept.files.folder
    try:
        runs, overlaps = look_at_runs(kept.desk.own_home, folder, table)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    page = OwnRunsPage(
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        runs=tuple(runs),
        overlaps=tuple(overlaps),
    )
    return render_page(request, page)
