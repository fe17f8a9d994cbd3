"""All pages and forms of the desk, by section, in the order of the navigation links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from party_sdk.desk.coordinator import advice, context, session_opening, session_page
from party_sdk.desk.party import order_pages, party_list, run_results, table_choice
from party_sdk.desk.party.addressed_party import PARTY_PATH, requested_party
from party_sdk.desk.responses import NavSection, desk_of, redirect_to, redirect_to_page
from party_sdk.desk.tables import own_tables

_SESSION: Final = f"{context.SESSIONS}/{{session}}"


def get_party(request: Request) -> Response:
    """Show what a party needs next: its terms, its table, its order or its result."""
    party = requested_party(request)
    is_order_over = party.exists and party.status().is_over
    if party.has_result or (party.has_ended and not is_order_over):
        return run_results.render_report_page(request, party)
    if is_order_over or (party.exists and party.table is not None):
        return order_pages.render_order_page(request, party)
    page = "table" if party.has_accepted else "terms"
    return redirect_to(request, f"{party.address}/{page}")


def _post(path: str, handle: Callable[[Request], Response]) -> Route:
    def answer_form(request: Request) -> Response:
        return redirect_to_page(request, desk_of(request), handle(request))

    return Route(path, answer_form, methods=["POST"])


SECTIONS: Final = (
    NavSection(
        path="/",
        text="Taking part",
        routes=(
            Route("/", party_list.get_parties),
            _post("/institution", party_list.post_name),
            Route("/card.json", party_list.get_card),
            _post("/cards", party_list.post_card),
            _post("/invitations", party_list.post_invitation),
            Route(PARTY_PATH, get_party),
            Route(f"{PARTY_PATH}/terms", order_pages.get_terms),
            _post(f"{PARTY_PATH}/terms", order_pages.post_terms),
            Route(f"{PARTY_PATH}/terms/sheet.html", order_pages.get_sheet),
            Route(f"{PARTY_PATH}/terms/assessment.md", order_pages.get_assessment),
            _post(f"{PARTY_PATH}/decline", order_pages.post_decline),
            Route(f"{PARTY_PATH}/table", table_choice.get_table),
            _post(f"{PARTY_PATH}/table", table_choice.get_table),
            _post(f"{PARTY_PATH}/table/mapping", table_choice.post_mapping),
            _post(f"{PARTY_PATH}/table/rehearsal", table_choice.post_rehearsal),
            _post(f"{PARTY_PATH}/table/order", table_choice.post_order),
            Route(f"{PARTY_PATH}/runs", run_results.get_runs),
            _post(f"{PARTY_PATH}/answer", order_pages.post_answer),
            _post(f"{PARTY_PATH}/consent", order_pages.post_withdraw_consent),
            _post(f"{PARTY_PATH}/again", order_pages.post_again),
            Route(f"{PARTY_PATH}/report", run_results.get_report),
            Route(f"{PARTY_PATH}/report.html", run_results.get_report_file),
            Route(f"{PARTY_PATH}/labels", run_results.get_labels),
            Route(f"{PARTY_PATH}/unlinked", run_results.get_unlinked),
            Route(f"{PARTY_PATH}/export", run_results.get_export),
            _post(f"{PARTY_PATH}/names", run_results.post_names),
            Route(f"{PARTY_PATH}/new-rows", run_results.get_new_rows),
            _post(f"{PARTY_PATH}/new-rows", run_results.post_new_rows),
            _post(f"{PARTY_PATH}/new-rows/labels", run_results.post_file),
        ),
    ),
    NavSection(
        path=own_tables.TABLES,
        text="Your tables",
        routes=(
            Route(own_tables.TABLES, own_tables.get_tables),
            _post(own_tables.MAPPING, own_tables.post_mapping),
            _post(f"{own_tables.MAPPING}/file", own_tables.post_file),
            _post(own_tables.TRIAL, own_tables.post_trial),
            _post(f"{own_tables.TRIAL}/labels", own_tables.post_trial_labels),
        ),
    ),
    NavSection(
        path=context.SESSIONS,
        text="Coordinating",
        routes=(
            Route(context.SESSIONS, context.get_sessions),
            Route(context.ANALYST, context.get_analyst),
            _post(context.ANALYST, context.post_analyst),
            _post(f"{context.ANALYST}/forget", context.post_forget),
            Route(advice.ADVICE, advice.get_advice),
            Route(session_opening.NEW, session_opening.get_new),
            _post(session_opening.NEW, session_opening.post_new),
            Route(_SESSION, session_page.get_session),
            Route(f"{_SESSION}/report", session_page.get_report),
            Route(f"{_SESSION}/archive.zip", session_page.get_archive),
            _post(f"{_SESSION}/cancel", session_page.post_cancel),
            _post(f"{_SESSION}/deadline", session_page.post_deadline),
            _post(f"{_SESSION}/choice", session_page.post_choice),
            Route(f"{_SESSION}/invitations", session_opening.get_free_slots),
            _post(f"{_SESSION}/invitations", session_opening.post_new_invitations),
        ),
    ),
)
