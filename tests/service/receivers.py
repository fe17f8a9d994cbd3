"""Real receivers of notices in the process of the tests: HTTP, with TLS or without."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP
from support.analyst_process import free_port


@dataclass
class Hook:
    """A receiver of webhooks, and what it got."""

    port: int
    scheme: str = "http"
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    drips: bool = False
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook/of-somebody"


@contextmanager
def hook(folder: Path | None = None, **more: Any) -> Iterator[Hook]:
    """Run a receiver; ``folder``: with the certificate that lies there."""
    port = free_port()
    kept = Hook(port, "http" if folder is None else "https", **more)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            if kept.hangs:
                kept.closing.wait(60)
            if kept.drips:
                self._drip()
                return
            self.send_response(kept.status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def _drip(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not kept.closing.wait(0.02):
                try:
                    self.wfile.write(b"x")
                    self.wfile.flush()
                except OSError:
                    return

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass

    server = Quiet(("127.0.0.1", port), Handler)
    if folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield kept
    finally:
        kept.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    """A mail server, and what it took."""

    port: int
    refusal: str = ""
    got: list[Any] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        del server, session, options
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        del server, session
        self.got.append(envelope)
        return "250 OK"

    def authenticate(self, *asked: Any) -> Any:
        from aiosmtpd.smtp import AuthResult

        login = asked[-1]
        self.logins.append((login.login, login.password))
        return AuthResult(success=True)


@contextmanager
def mailbox(folder: Path | None = None) -> Iterator[Mailbox]:
    """Run a mail server; ``folder``: it takes mail under TLS and a login only."""
    kept = Mailbox(free_port())
    options: dict[str, Any] = {}
    if folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
        options = {
            "tls_context": context,
            "require_starttls": True,
            "authenticator": kept.authenticate,
            "auth_required": True,
        }

    class Server(Controller):
        def factory(self) -> SMTP:
            return SMTP(kept, **options)

    server = Server(kept, hostname="127.0.0.1", port=kept.port)
    server.start()
    try:
        yield kept
    finally:
        server.stop()


def until(check: Any, seconds: float = 60) -> None:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)
