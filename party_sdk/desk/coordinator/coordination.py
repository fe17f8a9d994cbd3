"""The routes of a coordinator's pages."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from party_sdk.desk.coordinator import advice, context, session_opening, session_page
from party_sdk.desk.responses import Room

_SESSION: Final = f"{context.SESSIONS}/{{session}}"

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
        Route(_SESSION, session_page.get_session),
        Route(f"{_SESSION}/report", session_page.get_report),
        Route(f"{_SESSION}/report.html", session_page.get_report_file),
        Route(f"{_SESSION}/audit.json", session_page.get_audit),
        Route(f"{_SESSION}/archive.zip", session_page.get_archive),
        Route(f"{_SESSION}/cancel", session_page.post_cancel, methods=["POST"]),
        Route(f"{_SESSION}/deadline", session_page.post_deadline, methods=["POST"]),
        Route(f"{_SESSION}/choice", session_page.post_choice, methods=["POST"]),
        Route(f"{_SESSION}/invitations", session_opening.get_inviting),
        Route(
            f"{_SESSION}/invitations", session_opening.post_inviting, methods=["POST"]
        ),
    ),
)
