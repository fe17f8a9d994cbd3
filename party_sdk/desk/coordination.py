"""Coordinating: the pages of sessions that this home opens."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from party_sdk.desk import (
    advising,
    coordinating,
    inviting,
    opening,
    repeating,
    watching,
)
from party_sdk.desk.answers import Room

_ONE: Final = f"{coordinating.SESSIONS}/{{session}}"

room: Final = Room(
    path=coordinating.SESSIONS,
    text="Coordinating",
    routes=(
        Route(coordinating.SESSIONS, coordinating.get_sessions),
        Route(coordinating.ANALYST, coordinating.get_analyst),
        Route(coordinating.ANALYST, coordinating.post_analyst, methods=["POST"]),
        Route(
            f"{coordinating.ANALYST}/forget", coordinating.post_forget, methods=["POST"]
        ),
        Route(advising.ADVICE, advising.get_advice),
        Route(opening.NEW, opening.get_new),
        Route(opening.NEW, opening.post_new, methods=["POST"]),
        Route(_ONE, watching.get_session),
        Route(f"{_ONE}/report", watching.get_report),
        Route(f"{_ONE}/report.html", watching.get_report_file),
        Route(f"{_ONE}/audit.json", watching.get_audit),
        Route(f"{_ONE}/archive.zip", watching.get_archive),
        Route(f"{_ONE}/cancel", watching.post_cancel, methods=["POST"]),
        Route(f"{_ONE}/deadline", watching.post_deadline, methods=["POST"]),
        Route(f"{_ONE}/choice", watching.post_choice, methods=["POST"]),
        Route(f"{_ONE}/invitations", inviting.get_inviting),
        Route(f"{_ONE}/invitations", inviting.post_inviting, methods=["POST"]),
        Route(f"{_ONE}/repeat", repeating.get_repeat),
        Route(f"{_ONE}/repeat", repeating.post_repeat, methods=["POST"]),
    ),
)
