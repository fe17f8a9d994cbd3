"""Taking part: the pages of the parties of this home."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from party_sdk.desk.party import order_pages, party_list, run_results, table_choice
from party_sdk.desk.party.addressed_party import PLACE, kept_of
from party_sdk.desk.responses import Room, to


def get_party(request: Request) -> Response:
    """Show what a party is at: its terms, its table, its run or its result."""
    kept = kept_of(request)
    if kept.has_result:
        return run_results.outcome(request, kept)
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
    return order_pages.at_work(request, kept)


room: Final = Room(
    path="/",
    text="Taking part",
    routes=(
        Route("/", party_list.get_parties),
        Route("/institution", party_list.post_name, methods=["POST"]),
        Route("/card.json", party_list.get_card),
        Route("/cards", party_list.post_card, methods=["POST"]),
        Route("/invitations", party_list.post_invitation, methods=["POST"]),
        Route(PLACE, get_party),
        Route(f"{PLACE}/terms", order_pages.get_terms),
        Route(f"{PLACE}/terms", order_pages.post_terms, methods=["POST"]),
        Route(f"{PLACE}/terms/sheet.html", order_pages.get_sheet),
        Route(f"{PLACE}/terms/assessment.md", order_pages.get_assessment),
        Route(f"{PLACE}/decline", order_pages.post_decline, methods=["POST"]),
        Route(f"{PLACE}/table", table_choice.get_table),
        Route(f"{PLACE}/mapping", table_choice.get_mapping),
        Route(f"{PLACE}/mapping", table_choice.post_mapping, methods=["POST"]),
        Route(f"{PLACE}/rehearsal", table_choice.post_rehearsal, methods=["POST"]),
        Route(f"{PLACE}/order", table_choice.post_order, methods=["POST"]),
        Route(f"{PLACE}/runs", run_results.get_runs),
        Route(f"{PLACE}/answer", order_pages.post_answer, methods=["POST"]),
        Route(f"{PLACE}/consent", order_pages.post_withdraw_consent, methods=["POST"]),
        Route(f"{PLACE}/again", order_pages.post_again, methods=["POST"]),
        Route(f"{PLACE}/report", run_results.get_report),
        Route(f"{PLACE}/report.html", run_results.get_report_file),
        Route(f"{PLACE}/labels", run_results.get_labels),
        Route(f"{PLACE}/unlinked", run_results.get_unlinked),
        Route(f"{PLACE}/export", run_results.get_export),
        Route(f"{PLACE}/names", run_results.post_names, methods=["POST"]),
        Route(f"{PLACE}/new-rows", run_results.get_new_rows),
        Route(f"{PLACE}/new-rows", run_results.post_new_rows, methods=["POST"]),
        Route(f"{PLACE}/new-rows/labels", run_results.post_file, methods=["POST"]),
    ),
)
