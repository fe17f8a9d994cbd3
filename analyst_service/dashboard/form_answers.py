"""What a form came to: said on the next page that its browser asks for, and then no more.

A browser holds it for a minute, for the next request may reach another process. No script
and no other site can read it, and it is sent over TLS alone where pages are.
"""

from __future__ import annotations

import base64
from typing import Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field, ValidationError

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.values import Value
from coterie_http.form_answers import SEE_OTHER
from coterie_pages.models.frame import Banner
from coterie_pages.served_pages import HEADERS

_COOKIE: Final = "coterie-answer"
_SECURE_COOKIE: Final = f"__Host-{_COOKIE}"  # a browser takes it over TLS alone
_SECONDS: Final = 60
_MOST_TEXT: Final = 600  # characters; a browser keeps 4,096 bytes
_MOST_COOKIE: Final = 4_000
BY_ITSELF: Final = "hx-request"
"""The header of a page that asks by itself."""


class FormAnswer(Value):
    """What is said on a page after a form was sent.

    page: the path of that page.
    text, remedy: why a form was refused, and what to do; empty where it was not.
    status: of the page, as an answer of HTTP.
    made_for, made: for whom a secret was made, and the secret, which is shown once.
    """

    page: str
    text: str = Field(default="", max_length=_MOST_TEXT)
    remedy: str = Field(default="", max_length=_MOST_TEXT)
    status: int = Field(default=200, ge=200, le=599)
    made_for: str = ""
    made: str = Field(default="", repr=False)

    @property
    def banner(self) -> Banner | None:
        """Return what stands above the page."""
        if not self.text:
            return None
        return Banner(text=self.text, remedy=self.remedy, good=False)


def say_on_page(request: Request, answer: FormAnswer) -> Response:
    """Return the way to the page of an answer, and let the browser hold the answer."""
    response = RedirectResponse(answer.page, SEE_OTHER, headers=dict(HEADERS))
    text = answer.model_dump_json(exclude_defaults=True).encode()
    _hold(request, response, base64.urlsafe_b64encode(text).decode(), _SECONDS)
    return response


def refuse_form(
    request: Request, page: str, problem: Problem, text: str, remedy: str = ""
) -> Response:
    """Return the way to a page that says why a form was refused; long texts are cut."""
    answer = FormAnswer(
        page=page,
        status=problem.status,
        text=text[:_MOST_TEXT],
        remedy=remedy[:_MOST_TEXT],
    )
    return say_on_page(request, answer)


def answer_for(request: Request) -> FormAnswer | None:
    """Return what is to be said on the page that is asked for; None for nothing.

    A page that asks by itself is not the one that follows a form.
    """
    held = request.cookies.get(_name(request), "")
    if not held or len(held) > _MOST_COOKIE or BY_ITSELF in request.headers:
        return None
    try:
        found = FormAnswer.model_validate_json(base64.urlsafe_b64decode(held))
    except (ValueError, ValidationError):
        return None
    return found if found.page == request.url.path else None


def drop_answer(request: Request, response: Response) -> None:
    """Let the browser forget what was said."""
    _hold(request, response, "", 0)


def _hold(request: Request, response: Response, text: str, seconds: int) -> None:
    secure = request.url.scheme == "https"
    response.set_cookie(
        _name(request),
        text,
        max_age=seconds,
        path="/" if secure else "/ui",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def _name(request: Request) -> str:
    return _SECURE_COOKIE if request.url.scheme == "https" else _COOKIE
