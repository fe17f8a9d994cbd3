"""Coordinating: the pages of sessions that this home opens."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from party_sdk.desk.coordinator import advice, context, session_opening, session_page
from party_sdk.desk.responses import Room

_ONE: Final = f"{context.SESSIONS}/{{session}}"

room: Final = Room(
    path=context.SESSIONS,
    text="Coordinating",
    routes=(
        Route(context.SESSIONS, context.get_sessions),
        Route(context.ANALYST, context.get_analyst),
        Route(context.ANALYST, context.post_analyst, methods=["POST"]),
        Route(f"{context.ANALYST}/forget", context.post_forget, methods=["POST"]),
        Route(advice.ADVICE, advice.get_advice),
        Route(session_opening.NEW, session_opening.get_new),
        Route(session_opening.NEW, session_opening.post_new, methods=["POST"]),
        Route(_ONE, session_page.get_session),
        Route(f"{_ONE}/report", session_page.get_report),
        Route(f"{_ONE}/report.html", session_page.get_report_file),
        Route(f"{_ONE}/audit.json", session_page.get_audit),
        Route(f"{_ONE}/archive.zip", session_page.get_archive),
        Route(f"{_ONE}/cancel", session_page.post_cancel, methods=["POST"]),
        Route(f"{_ONE}/deadline", session_page.post_deadline, methods=["POST"]),
        Route(f"{_ONE}/choice", session_page.post_choice, methods=["POST"]),
        Route(f"{_ONE}/invitations", session_opening.get_inviting),
        Route(f"{_ONE}/invitations", session_opening.post_inviting, methods=["POST"]),
    ),
)
