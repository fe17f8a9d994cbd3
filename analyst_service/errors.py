"""The exception handlers, which turn exceptions into problem documents (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    TimeoutError as PoolTimeout,
)
from starlette.exceptions import HTTPException

from analyst_service.logs import current_request_context, describe_error
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, SessionOver
from clustering_protocols.common.values import describe_finding

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

_HEADERS: Mapping[Problem, Mapping[str, str]] = {
    Problem.UNAUTHENTICATED: {"WWW-Authenticate": "Bearer"},
    Problem.TOO_MANY_REQUESTS: {"Retry-After": "1"},
    Problem.UNAVAILABLE: {"Retry-After": "2"},
    Problem.NOT_READY: {"Retry-After": "1"},
}
_BY_STATUS = {
    problem.status: problem
    for problem in (Problem.NOT_FOUND, Problem.TOO_LARGE, Problem.TIMEOUT)
}


class ProblemDocument(BaseModel):
    """The body of every error response."""

    type: str = Field(examples=[Problem.ROUND_CLOSED.urn])
    title: str
    status: int
    detail: str = Field(description="What was expected and what was received.")
    remedy: str = Field(description="What to do.")
    request_id: str
    state: str | None = Field(
        default=None, description="State of a session that is over."
    )
    reason: str | None = Field(default=None, description="Why it ended.")


def problem_response(
    problem: Problem,
    detail: str,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return the response for a problem, and note the problem for the request's log."""
    context = current_request_context()
    context.problem = problem.slug
    more = {"remedy": problem.remedy, **(extra or {})}
    document = ProblemDocument(
        type=problem.urn,
        title=problem.title,
        status=problem.status,
        detail=detail,
        request_id=context.request_id,
        **more,
    )
    return JSONResponse(
        document.model_dump(exclude_none=True),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS.get(problem, {}), **(headers or {})},
    )


def install_exception_handlers(app: FastAPI) -> None:
    """Register the exception handlers of the application."""
    app.add_exception_handler(CoterieError, _handle_coterie_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    for outage in (OperationalError, InterfaceError, PoolTimeout):
        app.add_exception_handler(outage, _handle_outage)
    app.add_exception_handler(IntegrityError, _handle_integrity_error)


def _handle_coterie_error(_request: Request, error: Any) -> JSONResponse:
    extra: dict[str, Any] = {"remedy": error.remedy}
    if isinstance(error, SessionOver):
        extra |= {"state": error.state, "reason": error.reason}
    return problem_response(error.problem, error.detail, extra)


def _handle_validation_error(_request: Request, error: Any) -> JSONResponse:
    """Name the first invalid field and its rule, but never the value that was sent."""
    finding = error.errors()[0]
    place = ".".join(str(part) for part in finding["loc"])
    return problem_response(
        Problem.INVALID_PARAMETERS, f"{place}: {describe_finding(finding)}."
    )


def _handle_http_exception(_request: Request, error: Any) -> JSONResponse:
    """Translate an error of the framework into a problem of our catalogue."""
    if error.status_code == 405:
        return problem_response(
            Problem.NOT_FOUND,
            "This address does not support that method.",
            headers=error.headers,
        )
    problem = _BY_STATUS.get(error.status_code, Problem.MALFORMED)
    return problem_response(problem, f"{error.detail}.", headers=error.headers)


def _handle_outage(_request: Request, error: Exception) -> JSONResponse:
    log.error("database unavailable: %s", describe_error(error))
    if is_disk_full(error):
        return problem_response(
            Problem.STORAGE_FULL, "The analyst's database has no room left."
        )
    return problem_response(Problem.UNAVAILABLE, "The database does not answer.")


def _handle_integrity_error(_request: Request, _error: Exception) -> JSONResponse:
    """Ask the client to retry: the retry finds the row that another request created."""
    return problem_response(Problem.UNAVAILABLE, "Another request created it first.")


def is_disk_full(error: BaseException) -> bool:
    """Return whether a database error means that the disk is full."""
    cause = getattr(error, "orig", None)
    codes = (getattr(cause, "sqlstate", None), getattr(cause, "sqlite_errorname", None))
    return "53100" in codes or "SQLITE_FULL" in codes
