"""A server of a few lines, for as long as a test needs it."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class SmallHandler(BaseHTTPRequestHandler):
    """Says nothing of its requests."""

    def answer(self, status: int, content: str, media_type: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that goes away is no news."""


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], certificate: Path | None = None
) -> Iterator[str]:
    """Serve on this machine, by TLS with a folder's certificate; yield the address."""
    server = _Server(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "tls.pem", certificate / "tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' * bool(certificate)}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
