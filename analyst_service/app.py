"""The application: parts, routes, and the driver beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from analyst_service import errors
from analyst_service.contribution_endpoints import router as contributions
from analyst_service.database import Clock, Database
from analyst_service.driver import Driver
from analyst_service.member_endpoints import router as members
from analyst_service.metrics import Figure, Gauges, Metrics, expiry_of
from analyst_service.middleware import RequestLimits, RequestLog
from analyst_service.notice_endpoints import router as notices
from analyst_service.notices import Sender
from analyst_service.openapi import describe
from analyst_service.process_context import Service
from analyst_service.public_endpoints import (
    alive_router,
    catalogue_router,
    health_router,
    pages_router,
)
from analyst_service.requests import AdmittingRoute
from analyst_service.retention import Sweeper
from analyst_service.session_endpoints import results_router, router as sessions
from analyst_service.sessions import count_sessions, longest_waits
from analyst_service.settings import Settings

ROUTERS = (
    contributions,  # the most frequent first: they are matched in this order
    catalogue_router,
    sessions,
    members,
    results_router,
    notices,
    pages_router,
    alive_router,
    health_router,
)


# A trace collector on the machine would see every request, and the text of every error,
# which may hold values. Figures are at /metrics.
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
    """Return the application; the database and the driver live while it runs.

    ``certificate_ends``: the expiry of the certificate that this process itself serves.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        blobs = settings.blob_place.open()
        database = Database(settings.database, settings.database_connections, clock)
        service = Service(
            settings=settings,
            database=database,
            blobs=blobs,
            metrics=metrics,
        )
        app.state.service = service
        gauges = Gauges(look_ups(service))
        metrics.registry.register(gauges)
        try:
            with Driver(service), Sweeper(service), Sender(service):
                yield
        finally:
            metrics.registry.unregister(gauges)
            database.close()

    def look_ups(service: Service) -> dict[str, tuple[str, Callable[[], Figure]]]:
        database, mark = service.database, settings.backup_mark

        def certificate_days() -> float | None:
            ends, path = certificate_ends, settings.certificate_file
            with suppress(OSError, ValueError):  # no figure of what cannot be read
                ends = expiry_of(path) if path and not ends else ends
            return (ends - service.clock.now()) / timedelta(days=1) if ends else None

        return {
            "coterie_sessions": (
                "Sessions by state.",
                partial(database.query, count_sessions),
            ),
            "coterie_longest_wait_seconds": (
                "Seconds that any session has been in its state, at most.",
                partial(database.query, longest_waits),
            ),
            "coterie_free_bytes": ("Room left for blobs.", service.blobs.free_bytes),
            "coterie_ready": (
                "1 while the analyst is ready.",
                lambda: float(service.is_ready()),
            ),
            "coterie_certificate_days": (
                "Days until the certificate that parties see expires.",
                certificate_days,
            ),
            "coterie_last_backup_timestamp_seconds": (
                "When the last 'coterie backup' ended (POSIX); 0 for never.",
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
        openapi_url=None,  # the catalogue has a route that is counted and cheap
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
    errors.install(app)
    _describe(app)
    # each one wraps those added before it
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(RequestLog, metrics=metrics)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _describe(app: FastAPI) -> None:
    """Complete the OpenAPI document with everything that the framework cannot know."""
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
        describe(document, with_caller)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as its manual says
