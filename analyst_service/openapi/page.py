"""The API to read and to try: Swagger UI from this address, under the pages' policy."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

from analyst_service.requests.deps import AdmittingRoute
from clustering_protocols.common.errors import NotFound
from coterie_pages.served_pages import HEADERS, asset_in

router = APIRouter(include_in_schema=False, route_class=AdmittingRoute)

_PACKAGE: Final = "analyst_service.openapi"
_TYPES: Final = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
}


@router.get("/docs")
def get_docs() -> Response:
    """Return the page."""
    return Response(_page(), media_type="text/html", headers=dict(HEADERS))


@router.get("/docs/{name}")
def get_part(name: str) -> Response:
    """Return a script or the style of the page."""
    if name not in _TYPES:
        raise NotFound("Nothing has this address.")
    found = asset_in(_PACKAGE, f"static/{name}", _TYPES[name])
    # its address is the same in the next release
    return Response(
        found.content, headers={**found.headers, "Cache-Control": "max-age=3600"}
    )


@cache
def _page() -> bytes:
    return files(_PACKAGE).joinpath("page.html").read_bytes()
