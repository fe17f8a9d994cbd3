"""Catalogue, description of the API and the analyst's key; none needs a credential.

All but the key are large and stay the same while the process lives: their bytes are kept.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated

from fastapi import APIRouter, FastAPI, Path, Request, Response

from analyst_service.catalogue.schemas import Catalogue, ProtocolRead
from analyst_service.configuration.settings import Settings
from analyst_service.requests.deps import AdmittingRoute, ServiceDep
from clustering_protocols import catalogue
from clustering_protocols.common.errors import NotFound
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.engine.message_tables import MessageTable, build_message_table
from clustering_protocols.wire.answers import AnalystIdentity

router = APIRouter(tags=["catalogue"], route_class=AdmittingRoute)


@router.get("/v1/protocols", response_model=Catalogue)
def list_protocols(service: ServiceDep) -> Response:
    """List protocols with their parameters and risks."""
    return Response(_catalogue(service.settings), media_type="application/json")


@router.get("/v1/protocols/{name}/messages", response_model=MessageTable)
def list_messages(
    service: ServiceDep,
    name: Annotated[str, Path(pattern=NAME_PATTERN, description="Of the catalogue.")],
) -> Response:
    """Describe every message of a protocol: its fields, sender and reader.

    Raises NotFound where this analyst does not offer the protocol.
    """
    if name not in catalogue.catalogue() or not service.settings.offers(name):
        raise NotFound(
            "This analyst offers no protocol of this name; GET /v1/protocols lists them."
        )
    return Response(_message_table(name), media_type="application/json")


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
def _message_table(name: str) -> bytes:
    return build_message_table(name).model_dump_json().encode()


@cache
def _document(app: FastAPI) -> bytes:
    return json.dumps(app.openapi(), separators=(",", ":")).encode()
