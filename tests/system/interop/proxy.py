"""An analyst's address behind which somebody changes what it says, or cuts the line."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

Change = Callable[[str, bytes], bytes]
"""The body of an answer, given the path of its request and what the analyst said."""
Cut = Callable[[str, str], bool]
"""Whether the line is cut before the answer, given method and path."""

_OWN_HEADERS = {"content-length", "transfer-encoding", "connection", "content-encoding"}


def leave(path: str, body: bytes) -> bytes:
    del path
    return body


def never(method: str, path: str) -> bool:
    del method, path
    return False


@contextmanager
def between(url: str, change: Change = leave, cut: Cut = never) -> Iterator[str]:
    """Yield the address of what stands between parties and an analyst."""
    upstream = httpx.Client(base_url=url, timeout=120)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(size)
            asked = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            answer = upstream.request(
                self.command, self.path, headers=asked, content=content
            )
            if cut(self.command, self.path):
                self.close_connection = True
                return
            body = answer.content
            if answer.is_success:
                body = change(self.path, body)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _OWN_HEADERS:
                    self.send_header(name, value)
            if answer.status_code != httpx.codes.NO_CONTENT:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_PATCH = _pass_on  # noqa: N815  http.server's names

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        upstream.close()
