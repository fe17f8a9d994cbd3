"""What carried files call each question: by the method and path that HTTP has for it.

Files of earlier releases hold these names: they stay, whatever carries a question.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Question: TypeAlias = tuple[str, str]

PREVIEW: Final[Question] = ("POST", "/v1/join/preview")
JOIN: Final[Question] = ("POST", "/v1/join")
_PLACE: Final = re.compile(r"/rounds/([0-9]{1,10})/attempts/([0-9]{1,10})/contribution")


def name_session(session: str) -> Question:
    """Return the name of the question where a session stands."""
    return "GET", f"/v1/sessions/{session}"


def name_agreement(session: str) -> Question:
    """Return the name of the question what was agreed."""
    return "GET", f"/v1/sessions/{session}/agreement"


def name_task(session: str) -> Question:
    """Return the name of the question what a party is to do."""
    return "GET", f"/v1/sessions/{session}/task"


def name_result(session: str) -> Question:
    """Return the name of the question what came out."""
    return "GET", f"/v1/sessions/{session}/result"


def name_contribution(session: str, round_: int, attempt: int) -> Question:
    """Return the name of what is sent in a round."""
    place = f"rounds/{round_}/attempts/{attempt}"
    return "PUT", f"/v1/sessions/{session}/{place}/contribution"


def name_receipt(contribution: Question, digest: str) -> Question:
    """Return the name of the question what was said to these bytes.

    digest: their SHA-256 (hex).
    """
    method, path = contribution
    return f"{method} {digest}", path


def place_of(contribution: Question, session: str) -> tuple[int, int] | None:
    """Return the round and attempt that a contribution is for; None if it is none."""
    method, path = contribution
    found = _PLACE.fullmatch(path.removeprefix(f"/v1/sessions/{session}"))
    return (int(found[1]), int(found[2])) if found and method == "PUT" else None
