"""Health and figures over HTTP; none of it needs a credential or names anybody."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from analyst_service.requests.deps import AdmittingRoute, ServiceDep

alive = APIRouter(tags=["health"])  # not counted: a supervisor asks under any load
router = APIRouter(tags=["health"], route_class=AdmittingRoute)


class Health(BaseModel):
    """That it is well."""

    status: str = "ok"


@alive.get("/healthz")
async def get_health() -> Health:
    """Say that the process lives."""
    return Health()


@router.get("/readyz")
def get_readiness(service: ServiceDep) -> Health:
    """Say that database and blobs can be used; 503 while they cannot, and at the end."""
    service.require_ready()
    return Health()


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(service: ServiceDep) -> PlainTextResponse:
    """Return figures in Prometheus' text format."""
    figures = service.figures.get(service.clock.now())
    return PlainTextResponse(figures, headers={"Content-Type": CONTENT_TYPE_LATEST})
