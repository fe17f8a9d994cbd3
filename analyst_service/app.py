"""Build the FastAPI application of the analyst, with its routes and background threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from analyst_service import errors, retention
from analyst_service.contribution_endpoints import router as contributions
from analyst_service.database import Clock, Database
from analyst_service.driver import Driver
from analyst_service.member_endpoints import router as members
from analyst_service.metrics import Figure, GaugeCollector, Metrics, read_expiry
from analyst_service.middleware import RequestLimits, RequestLog
from analyst_service.notice_endpoints import router as notices
from analyst_service.notices import POLL_SECONDS, send_due_notices
from analyst_service.openapi import complete_document
from analyst_service.process_context import Service, repeat_in_thread
from analyst_service.public_endpoints import (
    alive_router,
    catalogue_router,
    health_router,
    pages_router,
)
from analyst_service.requests import AdmittingRoute
from analyst_service.session_endpoints import results_router, router as sessions
from analyst_service.sessions import count_sessions_by_state, longest_wait_by_state
from analyst_service.settings import Settings

ROUTERS = (
    contributions,  # first: routes are matched in order, and these are the most used
    catalogue_router,
    sessions,
    members,
    results_router,
    notices,
    pages_router,
    alive_router,
    health_router,
)


# Telemetry is off: a trace collector on the machine would see every request and the text of
# every error, which may contain values. The service publishes its metrics at /metrics.
_NO_TELEMETRY: Final[TelemetryConfig] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def create_app(
    settings: Settings,
    clock: Clock | None = None,
    certificate_ends: datetime | None = None,
) -> FastAPI:
    """Return the application, which opens the database and starts threads on startup.

    certificate_ends: when the TLS certificate that this process serves expires; None if
        it serves none.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        blobs = settings.blob_location.open()
        database = Database(settings.database, settings.database_connections, clock)
        service = Service(
            settings=settings,
            database=database,
            blobs=blobs,
            metrics=metrics,
        )
        app.state.service = service
        gauges = GaugeCollector(define_gauges(service))
        metrics.registry.register(gauges)
        try:
            with Driver(service), ExitStack() as threads:
                sweeping = partial(retention.sweep, service)
                threads.enter_context(
                    repeat_in_thread("sweeping", retention.SWEEP_SECONDS, sweeping)
                )
                if settings.sends_mail:
                    sending = partial(send_due_notices, service)
                    threads.enter_context(
                        repeat_in_thread("sending notices", POLL_SECONDS, sending)
                    )
                yield
        finally:
            metrics.registry.unregister(gauges)
            database.close()

    def define_gauges(service: Service) -> dict[str, tuple[str, Callable[[], Figure]]]:
        database, mark = service.database, settings.backup_mark

        def certificate_days_left() -> float | None:
            ends, path = certificate_ends, settings.certificate_file
            with suppress(OSError, ValueError):  # no certificate file, so no gauge
                ends = read_expiry(path) if path and not ends else ends
            return (ends - service.clock.now()) / timedelta(days=1) if ends else None

        return {
            "coterie_sessions": (
                "Sessions by state.",
                partial(database.query, count_sessions_by_state),
            ),
            "coterie_longest_wait_seconds": (
                "Longest time that a session has been in each state.",
                partial(database.query, longest_wait_by_state),
            ),
            "coterie_free_bytes": ("Free bytes for blobs.", service.blobs.free_bytes),
            "coterie_ready": (
                "1 while the analyst is ready.",
                lambda: float(service.is_ready()),
            ),
            "coterie_certificate_days": (
                "Days until the certificate that parties see expires.",
                certificate_days_left,
            ),
            "coterie_last_backup_timestamp_seconds": (
                "POSIX time of the last 'coterie backup'; 0 if there was none.",
                lambda: mark.stat().st_mtime if mark.exists() else 0.0,
            ),
        }

    metrics = Metrics()
    app = FastAPI(
        title="Coterie analyst",
        summary="Clusters over data that institutions may not pool.",
        version=version("coterie"),
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,
        openapi_url=None,  # pages_router serves a cached copy of the document
        generate_unique_id_function=lambda route: route.name,  # for generated clients
        responses={
            "default": {
                "description": "A problem (RFC 9457).",
                "content": {
                    errors.MEDIA_TYPE: {
                        "schema": {"$ref": "#/components/schemas/ProblemDocument"}
                    }
                },
            }
        },
    )
    errors.install_exception_handlers(app)
    _extend_openapi(app)
    # Each middleware wraps those that were added before it, so the log is outermost.
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(RequestLog, metrics=metrics)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _extend_openapi(app: FastAPI) -> None:
    """Add what FastAPI cannot derive from the routes to the OpenAPI document."""
    generate = app.openapi
    routes = [route for router in ROUTERS for route in router.routes]
    with_caller = frozenset(
        route.name
        for route in routes
        if isinstance(route, AdmittingRoute) and route.needs_caller
    )

    @cache
    def openapi() -> dict[str, Any]:
        document = generate()
        schema = errors.ProblemDocument.model_json_schema()
        document["components"]["schemas"]["ProblemDocument"] = schema
        complete_document(document, with_caller)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents this
