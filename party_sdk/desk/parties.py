"""Taking part: the pages of the parties of this home."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from party_sdk.desk import accepting, listing, outcomes, rehearsals, tables, working
from party_sdk.desk.answers import Room, to
from party_sdk.desk.kept import PLACE, kept_of


def get_party(request: Request) -> Response:
    """Show what a party is at: its terms, its table, its run or its result."""
    kept = kept_of(request)
    if kept.has_result:
        return outcomes.outcome(request, kept)
    order = kept.order
    has_ended = order is not None and kept.files.status().is_over
    if (
        not kept.has_accepted
        and not has_ended
        and (order is None or order.table is None)
    ):
        return to(request, f"{kept.address}/terms")
    if order is None or (order.table is None and not has_ended):
        return to(request, f"{kept.address}/table")
    return working.at_work(request, kept)


room: Final = Room(
    path="/",
    text="Taking part",
    routes=(
        Route("/", listing.get_parties),
        Route("/invitations", listing.post_invitation, methods=["POST"]),
        Route(PLACE, get_party),
        Route(f"{PLACE}/terms", accepting.get_terms),
        Route(f"{PLACE}/terms", accepting.post_terms, methods=["POST"]),
        Route(f"{PLACE}/decline", accepting.post_decline, methods=["POST"]),
        Route(f"{PLACE}/table", tables.get_table),
        Route(f"{PLACE}/rehearsal", rehearsals.post_rehearsal, methods=["POST"]),
        Route(f"{PLACE}/order", tables.post_order, methods=["POST"]),
        Route(f"{PLACE}/answer", working.post_answer, methods=["POST"]),
        Route(f"{PLACE}/again", working.post_again, methods=["POST"]),
        Route(f"{PLACE}/report", outcomes.get_report),
        Route(f"{PLACE}/report.html", outcomes.get_report_file),
        Route(f"{PLACE}/labels", outcomes.get_labels),
    ),
)
