"""The catalogue over HTTP; it needs no credential."""

from __future__ import annotations

from fastapi import APIRouter

from analyst_service.catalogue.schemas import Catalogue, ProtocolRead
from clustering_protocols import registry

router = APIRouter(prefix="/v1/protocols", tags=["catalogue"])


@router.get("")
def list_protocols() -> Catalogue:
    """List protocols with their parameters and risks."""
    return Catalogue(
        protocols=[
            ProtocolRead.model_validate(registry.describe(name))
            for name in registry.catalogue()
        ]
    )
