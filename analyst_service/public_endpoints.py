"""HTTP endpoints that need no credential: the pages, the catalogue, health and metrics."""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Path, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from analyst_service.middleware import ALIVE_PATH, READY_PATH
from analyst_service.requests import AdmittingRoute, ServiceDep
from analyst_service.settings import Settings
from clustering_protocols import catalogue
from clustering_protocols.common.errors import NotFound
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.engine.message_tables import MessageTable, build_message_table
from clustering_protocols.wire.answers import AnalystIdentity
from coterie_pages.served_pages import HEADERS, read_asset

catalogue_router = APIRouter(tags=["catalogue"], route_class=AdmittingRoute)
pages_router = APIRouter(include_in_schema=False, route_class=AdmittingRoute)
# Not rate-limited: a process supervisor must get an answer even under heavy load.
alive_router = APIRouter(tags=["health"])
health_router = APIRouter(tags=["health"], route_class=AdmittingRoute)


class ProtocolRead(BaseModel):
    """A protocol: what it does, what it reveals to whom, and its parameters."""

    name: str
    version: int
    title: str
    summary: str
    partitionings: list[str]
    learns: dict[str, str] = Field(description="Who learns what.")
    risks: dict[str, str] = Field(description="Risk codes with a sentence each.")
    choices: dict[str, str] = Field(description="What a party decides alone.")
    params: dict[str, Any] = Field(description="JSON Schema of the parameters.")


class Catalogue(BaseModel):
    """The protocols that this analyst offers."""

    protocols: list[ProtocolRead]


@catalogue_router.get("/v1/protocols", response_model=Catalogue)
def list_protocols(service: ServiceDep) -> Response:
    """List the protocols that this analyst offers, with their parameters and risks."""
    return Response(_catalogue_json(service.settings), media_type="application/json")


@catalogue_router.get("/v1/protocols/{name}/messages", response_model=MessageTable)
def list_messages(
    service: ServiceDep,
    name: Annotated[str, Path(pattern=NAME_PATTERN, description="Of the catalogue.")],
) -> Response:
    """Describe every message of a protocol: its fields, its sender and its reader.

    Raises NotFound if this analyst does not offer the protocol.
    """
    if name not in catalogue.catalogue() or not service.settings.offers_protocol(name):
        raise NotFound(
            "This analyst offers no protocol of this name; GET /v1/protocols lists them."
        )
    return Response(_message_table_json(name), media_type="application/json")


@catalogue_router.get("/v1/identity")
def get_identity(service: ServiceDep) -> AnalystIdentity:
    """Return the public key that verifies this analyst's receipts and audits."""
    return AnalystIdentity(key=service.institution.key)


@cache
def _catalogue_json(settings: Settings) -> bytes:
    offered = [name for name in catalogue.catalogue() if settings.offers_protocol(name)]
    listed = [
        ProtocolRead.model_validate(catalogue.build_catalogue_entry(name))
        for name in offered
    ]
    return Catalogue(protocols=listed).model_dump_json().encode()


@cache
def _message_table_json(name: str) -> bytes:
    return build_message_table(name).model_dump_json().encode()


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1.05rem/1.6 system-ui, sans-serif; max-width: 38rem; margin: 12vh auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
"""

_PAGE: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Coterie analyst</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>This is the analyst of a Coterie session</h1>
<p>Institutions cluster their data together here without pooling the rows. There is
nothing to do in this window.</p>
<ul>
<li>People take part, and coordinate, at the desk on their own machine:
<code>coterie ui</code>.</li>
<li>Programs use <code>coterie session</code> and <code>coterie party</code>, or the API:
<code>/docs</code> at this address describes it.</li>
</ul>
<h2>If you followed an invitation</h2>
<p>An invitation looks like a link, but it is for a program. Anyone who holds it can take
your place in the session, so treat it like a password.</p>
<ol>
<li>Keep the invitation as a file, exactly as you got it: <code>invitation.txt</code>.</li>
<li>On the machine where your data are, read what you are invited to:
<code>coterie party join @invitation.txt</code></li>
<li>Then take part: <code>coterie party run @invitation.txt --data FILE</code></li>
<li>Delete this visit from the history of the browser, because the history contains the
invitation. The part after the <code>#</code> was not sent to this service.</li>
</ol>
<p>If other people use this browser, ask the coordinator for a new invitation, which
replaces the one that you followed.</p>
</main>
</body>
</html>
"""

_HASH: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@pages_router.get("/")
async def get_landing(request: Request) -> Response:
    """Return a page that explains the analyst to a person who opens its address.

    This person may have followed an invitation. An invitation looks like a link with
    the code after the '#', which browsers do not send. The page contains no script that
    could read the code, and it loads no other resources.
    """
    if "text/html" not in request.headers.get("accept", ""):
        raise NotFound("This address is not served.")
    return HTMLResponse(_PAGE, headers=_HEADERS)


@pages_router.get("/openapi.json")
def get_openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(_openapi_json(request.app), media_type="application/json")


@cache
def _openapi_json(app: FastAPI) -> bytes:
    return json.dumps(app.openapi(), separators=(",", ":")).encode()


_DOCS: Final = "analyst_service.openapi"
_TYPES: Final = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
}


@pages_router.get("/docs")
def get_docs() -> Response:
    """Return the page of Swagger UI, which loads resources from this server only."""
    page = files(_DOCS).joinpath("page.html").read_bytes()
    return Response(page, media_type="text/html", headers=dict(HEADERS))


@pages_router.get("/docs/{name}")
def get_docs_asset(name: str) -> Response:
    """Return one of the scripts or the style sheet of Swagger UI."""
    if name not in _TYPES:
        raise NotFound("There is no page at this address.")
    asset = read_asset(_DOCS, f"static/{name}", _TYPES[name])
    # The next release may serve different content here, so cache it only briefly.
    return Response(
        asset.content, headers={**asset.headers, "Cache-Control": "max-age=3600"}
    )


class Health(BaseModel):
    """The answer of a healthy service."""

    status: str = "ok"


@alive_router.get(ALIVE_PATH)
async def get_health() -> Health:
    """Return 200 as long as the process is alive."""
    return Health()


@health_router.get(READY_PATH)
def get_readiness(service: ServiceDep) -> Health:
    """Return 200 if the database and the blob storage can be used, and 503 otherwise.

    Also returns 503 while the service is shutting down.
    """
    service.require_ready()
    return Health()


@health_router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(service: ServiceDep) -> PlainTextResponse:
    """Return the metrics, which identify nobody, in the text format of Prometheus."""
    figures = service.figures.get(service.clock.now())
    return PlainTextResponse(figures, headers={"Content-Type": CONTENT_TYPE_LATEST})
