"""The routes of a party's pages."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from party_sdk.desk.party import order_pages, party_list, run_results, table_choice
from party_sdk.desk.party.addressed_party import PARTY_PATH, party_in
from party_sdk.desk.responses import Room, redirect_to


def get_party(request: Request) -> Response:
    """Show the current page of a party: its terms, its table, its run or its result."""
    party = party_in(request)
    if party.has_result:
        return run_results.report_page(request, party)
    has_ended = party.files.exists and party.files.status().is_over
    if party.table is not None or has_ended:
        return order_pages.order_page(request, party)
    page = "table" if party.has_accepted else "terms"
    return redirect_to(request, f"{party.address}/{page}")


room: Final = Room(
    path="/",
    text="Taking part",
    routes=(
        Route("/", party_list.get_parties),
        Route("/institution", party_list.post_name, methods=["POST"]),
        Route("/card.json", party_list.get_card),
        Route("/cards", party_list.post_card, methods=["POST"]),
        Route("/invitations", party_list.post_invitation, methods=["POST"]),
        Route(PARTY_PATH, get_party),
        Route(f"{PARTY_PATH}/terms", order_pages.get_terms),
        Route(f"{PARTY_PATH}/terms", order_pages.post_terms, methods=["POST"]),
        Route(f"{PARTY_PATH}/terms/sheet.html", order_pages.get_sheet),
        Route(f"{PARTY_PATH}/terms/assessment.md", order_pages.get_assessment),
        Route(f"{PARTY_PATH}/decline", order_pages.post_decline, methods=["POST"]),
        Route(f"{PARTY_PATH}/table", table_choice.get_table),
        Route(f"{PARTY_PATH}/mapping", table_choice.get_mapping),
        Route(f"{PARTY_PATH}/mapping", table_choice.post_mapping, methods=["POST"]),
        Route(f"{PARTY_PATH}/rehearsal", table_choice.post_rehearsal, methods=["POST"]),
        Route(f"{PARTY_PATH}/order", table_choice.post_order, methods=["POST"]),
        Route(f"{PARTY_PATH}/runs", run_results.get_runs),
        Route(f"{PARTY_PATH}/answer", order_pages.post_answer, methods=["POST"]),
        Route(
            f"{PARTY_PATH}/consent", order_pages.post_withdraw_consent, methods=["POST"]
        ),
        Route(f"{PARTY_PATH}/again", order_pages.post_again, methods=["POST"]),
        Route(f"{PARTY_PATH}/report", run_results.get_report),
        Route(f"{PARTY_PATH}/report.html", run_results.get_report_file),
        Route(f"{PARTY_PATH}/labels", run_results.get_labels),
        Route(f"{PARTY_PATH}/unlinked", run_results.get_unlinked),
        Route(f"{PARTY_PATH}/export", run_results.get_export),
        Route(f"{PARTY_PATH}/names", run_results.post_names, methods=["POST"]),
        Route(f"{PARTY_PATH}/new-rows", run_results.get_new_rows),
        Route(f"{PARTY_PATH}/new-rows", run_results.post_new_rows, methods=["POST"]),
        Route(f"{PARTY_PATH}/new-rows/labels", run_results.post_file, methods=["POST"]),
    ),
)
