"""Post/Redirect/Get: responses to forms are stored, and shown after a redirect."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

SEE_OTHER: Final = 303
"""The HTTP status that makes the browser follow a redirect with GET."""

ANSWER_PARAMETER: Final = "answered"
"""The query parameter that names a stored response."""
MAX_ANSWERS: Final = 16
MAX_BYTES: Final = 32 * 2**20
_NAME_BYTES: Final = 12


def is_page(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a response is an HTML page, not a redirect or a download.

    headers: the response's headers, with lower-case names.
    """
    return (
        not 300 <= status < 400
        and headers.get("content-type", "").startswith("text/html")
        and "content-disposition" not in headers
    )


class FormAnswers:
    """The latest responses to a visit's forms, held in memory.

    The oldest are dropped if there are more than 16, or more than 32 MiB in total.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Response] = OrderedDict()
        self._lock = Lock()

    def store(self, answer: Response) -> str:
        """Store a response and return the random name by which it can be found."""
        name = secrets.token_urlsafe(_NAME_BYTES)
        with self._lock:
            self._answers[name] = answer
            while len(self._answers) > 1 and (
                len(self._answers) > MAX_ANSWERS
                or sum(len(response.body) for response in self._answers.values())
                > MAX_BYTES
            ):
                self._answers.popitem(last=False)
        return name

    def find(self, name: str) -> Response | None:
        """Return the response with this name, or None if it is no longer stored."""
        return self._answers.get(name)

    def respond_again(self, request: Request) -> Response | None:
        """Return the stored response that the query names, or None if it names none.

        If the response is no longer stored, return a redirect that drops its name.
        """
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        names = [value for name, value in fields if name == ANSWER_PARAMETER]
        if not names:
            return None
        other_fields = urlencode(
            [field for field in fields if field[0] != ANSWER_PARAMETER]
        )
        path = request.url.path
        return self.find(names[0]) or see_other(
            f"{path}?{other_fields}" if other_fields else path
        )

    def clear(self) -> None:
        """Delete all stored responses."""
        with self._lock:
            self._answers.clear()


def see_other(address: str) -> Response:
    """Return a 303 redirect, which the browser follows with a GET request."""
    return RedirectResponse(address, SEE_OTHER)
