"""What anyone who comes by chance reads: what an invitation is, and whom to tell.

An invitation looks like a link. What is behind its '#' stays in the browser: this page
has no script that could read it, loads nothing, and leads nowhere.
"""

from __future__ import annotations

import base64
from datetime import UTC, timedelta
from hashlib import sha256
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from analyst_service.requests.deps import AdmittingRoute, ServiceDep
from clustering_protocols.common.errors import NotFound

router = APIRouter(route_class=AdmittingRoute)

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
<h2>If you followed an invitation</h2>
<p>An invitation looks like a link, but it is for a program. Anyone who holds it can take
your place in the session, so treat it like a password.</p>
<ol>
<li>Keep the invitation as a file, exactly as you got it: <code>invitation.txt</code>.</li>
<li>On the machine where your data are, read what you are invited to:
<code>coterie party join @invitation.txt</code></li>
<li>Then take part: <code>coterie party run @invitation.txt --data FILE</code></li>
<li>Delete this visit from the history of the browser: the invitation is in it. What
stands behind the <code>#</code> was not sent to this service.</li>
</ol>
<p>If other people use this browser, ask the coordinator for a new invitation: the one
that you followed ends with it.</p>
</main>
</body>
</html>
"""

_COPY_COUNTS: Final = timedelta(days=30)
_HASH: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@router.get("/", include_in_schema=False)
async def get_landing(request: Request) -> Response:
    """Tell people what an invitation is; programs find nothing here."""
    if "text/html" not in request.headers.get("accept", ""):
        raise NotFound("This address is not served.")
    return HTMLResponse(_PAGE, headers=_HEADERS)


@router.get("/.well-known/security.txt", include_in_schema=False)
async def get_security_text(service: ServiceDep) -> Response:
    """Say whom to tell of a weakness (RFC 9116), where that is set."""
    contacts = service.settings.security_contact.split()
    if not contacts:
        raise NotFound("This address is not served.")
    # what is read today is what is set today: a copy counts for a month
    expires = (service.clock.now() + _COPY_COUNTS).astimezone(UTC)
    lines = [f"Contact: {contact}" for contact in contacts]
    lines.append(f"Expires: {expires:%Y-%m-%dT00:00:00Z}")
    return PlainTextResponse("\n".join([*lines, ""]))
