"""The application: parts, routes, and the driver beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.routing import APIRoute

from analyst_service import errors
from analyst_service.blobs.files import FileBlobStore
from analyst_service.catalogue.endpoints import router as catalogue
from analyst_service.clock import Clock, SystemClock
from analyst_service.contributions.endpoints import router as contributions
from analyst_service.database import Database
from analyst_service.deps import Service
from analyst_service.jobs.driver import Driver
from analyst_service.limits import BoundedBodies
from analyst_service.members.endpoints import router as members
from analyst_service.results.endpoints import router as results
from analyst_service.sessions.endpoints import router as sessions
from analyst_service.settings import Settings


def create_app(settings: Settings, clock: Clock | None = None) -> FastAPI:
    """Return the application; database and driver live while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        blobs = FileBlobStore(settings.blob_dir)
        blobs.sweep()
        database = Database(settings.database)
        service = Service(settings, clock or SystemClock(), database, blobs)
        app.state.service = service
        try:
            with Driver(service):
                yield
        finally:
            database.close()

    app = FastAPI(
        title="Coterie analyst",
        summary="Clusters over data that institutions may not pool.",
        version=version("coterie"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        responses={
            "default": {
                "description": "A problem (RFC 9457).",
                "content": {
                    errors.MEDIA_TYPE: {
                        "schema": errors.ProblemDocument.model_json_schema()
                    }
                },
            }
        },
    )
    errors.install(app)
    app.add_middleware(BoundedBodies, max_json_bytes=settings.max_json_bytes)
    for router in (catalogue, sessions, members, contributions, results):
        app.include_router(router)
    return app


def _operation_id(route: APIRoute) -> str:
    """Return short names for generated clients."""
    return route.name
