"""Pages about one session for its coordinator: its status, its report, and actions."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidParameters, Unavailable
from clustering_protocols.wire.answers import describe_pace, updates_done
from coterie_pages.models import Refusal, Screen
from coterie_pages.pages import render_html as file_of
from coterie_pages.views.session_views import allowed_actions, slot_entries
from party_sdk.application.exports import can_preview_runs
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.desk.coordinator.context import (
    SESSIONS,
    parse_number,
    pass_coordinator,
    requested_session,
)
from party_sdk.desk.responses import download, form_of, redirect_to, render_page
from party_sdk.home.clock import now
from party_sdk.reports.session_reports import archive, audited_report, session_report

_REFRESH_SECONDS: Final = 4  # while the session runs
_AWAY_SECONDS: Final = 3
_MOST_LINES: Final = 200
_DAY: Final = 86_400
_MOST_DAYS: Final = 366


@pass_coordinator
def get_report(request: Request, coordinator: Coordinator) -> Response:
    """Show the report of a session."""
    opened = requested_session(request, coordinator)
    report, _ = audited_report(coordinator, opened, opened.status())
    return render_page(request, report)


@pass_coordinator
def get_archive(request: Request, coordinator: Coordinator) -> Response:
    """Return a zip archive with the session's report, its signed audit, and its texts."""
    opened = requested_session(request, coordinator)
    status = opened.status()
    report, log = audited_report(coordinator, opened, status)
    content = archive(opened, status, report, file_of(report), log)
    return download(content, f"{opened.id}.zip", "application/zip")


@pass_coordinator
def post_cancel(request: Request, coordinator: Coordinator) -> Response:
    """Cancel a session for all parties."""
    opened = requested_session(request, coordinator)
    opened.cancel()
    return redirect_to(request, f"{SESSIONS}/{opened.id}")


@pass_coordinator
def post_deadline(request: Request, coordinator: Coordinator) -> Response:
    """Extend the session's deadline by the submitted number of days."""
    days = parse_number(form_of(request).get("days"), "days")
    if days > _MOST_DAYS:
        raise InvalidParameters(f"at most {_MOST_DAYS}.", field="days")
    opened = requested_session(request, coordinator)
    opened.extend(days * _DAY)
    return redirect_to(request, f"{SESSIONS}/{opened.id}")


@pass_coordinator
def post_choice(request: Request, coordinator: Coordinator) -> Response:
    """Choose the number of clusters whose run provides the labels for all parties."""
    opened = requested_session(request, coordinator)
    opened.choose(parse_number(form_of(request).get("n_clusters"), "n_clusters"))
    return redirect_to(request, f"{SESSIONS}/{opened.id}")


@pass_coordinator
def get_session(request: Request, coordinator: Coordinator) -> Response:
    """Show a session on a page that refreshes itself while the session runs."""
    opened = requested_session(request, coordinator)
    try:
        status, log = opened.status(), opened.audit()
        entries = log.verified_entries()  # only once: verification is slow
        trusted = coordinator.trusted_institutions
        report = session_report(opened, status, log, entries, trusted)
    except Unavailable as error:
        refusal = Refusal(
            title="The analyst cannot answer now",
            detail=error.detail,
            remedy="This page tries again every few seconds. Nothing is lost: the session "
            "waits until its deadline.",
        )
        return render_page(request, refusal, seconds=_AWAY_SECONDS)
    actions = tuple(allowed_actions(status))
    page = Screen(
        "desk/session.html.j2",
        report=report.model_copy(update={"audit": report.audit[-_MOST_LINES:]}),
        board=tuple(
            slot_entries(status, opened.terms.layout if opened.is_ours else None)
        ),
        status=status,
        now=now(),
        pace=describe_pace(status),
        may=actions,
        updates=updates_done(status) if "updates" in status.progress else (0, 0),
        audit_lines=len(entries),
        here=opened.is_ours,
        previews_runs=opened.is_ours and can_preview_runs(opened.terms),
    )
    seconds = 0 if status.is_over else _REFRESH_SECONDS
    return render_page(request, page, seconds=seconds, waits="choose" in actions)
