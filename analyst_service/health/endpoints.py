"""Health and figures over HTTP; none of it needs a credential or names anybody."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from analyst_service.deps import ServiceDep
from clustering_protocols.errors import Unavailable

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """That it is well."""

    status: str = "ok"


@router.get("/healthz")
async def get_health() -> Health:
    """Say that the process lives."""
    return Health()


@router.get("/readyz")
def get_readiness(service: ServiceDep) -> Health:
    """Say that database and blobs can be used; 503 while they cannot."""
    if not service.database.is_current():
        raise Unavailable("The database has the schema of another release.")
    draft = service.blobs.draft()
    draft.discard()
    return Health()


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(service: ServiceDep) -> PlainTextResponse:
    """Return figures in Prometheus' text format."""
    return PlainTextResponse(
        service.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST}
    )
