"""Catalogue, description of the API and the analyst's key; none needs a credential.

The first two are large and stay the same while the process lives: their bytes are kept.
"""

from __future__ import annotations

import json
from functools import cache

from fastapi import APIRouter, FastAPI, Request, Response

from analyst_service.catalogue.schemas import Catalogue, ProtocolRead
from analyst_service.configuration.settings import Settings
from analyst_service.requests.deps import AdmittingRoute, ServiceDep
from clustering_protocols import catalogue
from clustering_protocols.wire.answers import AnalystIdentity

router = APIRouter(tags=["catalogue"], route_class=AdmittingRoute)


@router.get("/v1/protocols", response_model=Catalogue)
def list_protocols(service: ServiceDep) -> Response:
    """List protocols with their parameters and risks."""
    return Response(_catalogue(service.settings), media_type="application/json")


@router.get("/v1/identity")
def get_identity(service: ServiceDep) -> AnalystIdentity:
    """Say under which key this analyst signs receipts and audits."""
    return AnalystIdentity(key=service.institution.key)


@router.get("/openapi.json", include_in_schema=False)
def get_openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(_document(request.app), media_type="application/json")


@cache
def _catalogue(settings: Settings) -> bytes:
    offered = [name for name in catalogue.catalogue() if settings.offers(name)]
    listed = [ProtocolRead.model_validate(catalogue.describe(name)) for name in offered]
    return Catalogue(protocols=listed).model_dump_json().encode()


@cache
def _document(app: FastAPI) -> bytes:
    return json.dumps(app.openapi(), separators=(",", ":")).encode()
