"""The one place that turns exceptions into problem documents (RFC 9457)."""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import IntegrityError, OperationalError
from starlette.exceptions import HTTPException

from clustering_protocols.errors import CoterieError, SessionOver
from clustering_protocols.problems import Problem

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class ProblemDocument(BaseModel):
    """What every refusal looks like."""

    type: str = Field(examples=[Problem.ROUND_CLOSED.urn])
    title: str
    status: int
    detail: str = Field(description="What was expected and what came.")
    remedy: str = Field(description="What to do.")
    request_id: str
    state: str | None = Field(
        default=None, description="Of the session, if it is over."
    )
    reason: str | None = Field(default=None, description="Of the session's end.")


def problem_response(
    problem: Problem,
    detail: str,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return the document of a problem."""
    document = ProblemDocument(
        type=problem.urn,
        title=problem.title,
        status=problem.status,
        detail=detail,
        remedy=problem.remedy,
        request_id=secrets.token_hex(8),
        **(extra or {}),
    )
    return JSONResponse(
        document.model_dump(exclude_none=True),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def install(app: FastAPI) -> None:
    """Register the handlers; order does not matter, each has its own exception."""
    app.add_exception_handler(CoterieError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(OperationalError, _database)
    app.add_exception_handler(IntegrityError, _collision)
    app.add_exception_handler(Exception, _unknown)


def _known(request: Request, error: Exception) -> JSONResponse:
    del request
    if not isinstance(error, CoterieError):
        raise error
    extra = {}
    if isinstance(error, SessionOver):
        extra = {"state": error.state, "reason": error.reason}
    headers = {}
    if error.problem is Problem.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return problem_response(error.problem, error.detail, extra, headers)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Name the field and the rule, never the value that came."""
    del request
    if not isinstance(error, RequestValidationError):
        raise error
    finding = error.errors()[0]
    unreadable = finding["type"] == "json_invalid"
    problem = Problem.MALFORMED if unreadable else Problem.INVALID_PARAMETERS
    place = ".".join(str(part) for part in finding["loc"])
    return problem_response(problem, f"{place}: {finding['msg']}.")


def _http(request: Request, error: Exception) -> JSONResponse:
    """Turn what the framework itself refuses into the closed list."""
    del request
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:
        return problem_response(
            Problem.NOT_FOUND,
            "This address does not know that method.",
            headers=error.headers,
        )
    framework = (Problem.NOT_FOUND, Problem.MALFORMED, Problem.TOO_LARGE)
    known = {problem.status: problem for problem in framework}
    problem = known.get(error.status_code, Problem.MALFORMED)
    return problem_response(problem, f"{error.detail}.", headers=error.headers)


def _database(request: Request, error: Exception) -> JSONResponse:
    del request
    log.error("database unavailable: %s", type(error).__name__)
    return problem_response(
        Problem.UNAVAILABLE,
        "The database does not answer.",
        headers={"Retry-After": "5"},
    )


def _collision(request: Request, error: Exception) -> JSONResponse:
    """Two requests created the same thing at once; the repeat finds it."""
    del request, error
    return problem_response(
        Problem.UNAVAILABLE, "Another request was faster.", headers={"Retry-After": "1"}
    )


def _unknown(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, describe(error))
    return problem_response(Problem.INTERNAL, "An unexpected error.")


def describe(error: BaseException) -> str:
    """Return kind and place of an exception; its text may hold a value."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{where}"
