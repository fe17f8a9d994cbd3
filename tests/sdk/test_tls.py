"""To whom a client speaks: nobody whose certificate is not trusted gets a byte."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from support.tls import certificate

from clustering_protocols.errors import KeyNotAuthentic
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient

KEY = '{"key": "' + "0" * 64 + '"}'


class _Answers(BaseHTTPRequestHandler):
    """Answers everything, and notes what it was shown."""

    shown: list[str | None]

    def do_GET(self) -> None:
        self.shown.append(self.headers["Authorization"])
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(KEY)))
        self.end_headers()
        self.wfile.write(KEY.encode())

    def log_message(self, *_: object) -> None:
        pass


class _Server(HTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that goes away is no news."""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str | None]]]:
    """Serve with the certificate in a folder; yield address and what was shown."""
    shown: list[str | None] = []
    handler = type("Handler", (_Answers,), {"shown": shown})
    server = _Server(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def made(folder: Path, host: str = "127.0.0.1") -> Path:
    folder.mkdir()
    certificate(folder, host)
    return folder / "tls.pem"


def test_an_authority_of_the_institution_is_trusted_where_it_is_named(
    tmp_path: Path,
) -> None:
    own = made(tmp_path / "own")
    with served(own.parent) as (url, shown), Transport(url, ca_file=own) as transport:
        assert AnalystClient(transport, "token").identity() == "0" * 64
    assert shown == ["Bearer token"]


@pytest.mark.parametrize(
    ("shows", "trusts"),
    [
        ("own", lambda _: None),
        ("own", lambda folder: made(folder / "other")),
        ("elsewhere", lambda folder: folder / "elsewhere" / "tls.pem"),
    ],
    ids=["no authority", "another authority", "another host"],
)
def test_whoever_shows_no_trusted_certificate_gets_no_token_and_no_second_try(
    tmp_path: Path, shows: str, trusts: Callable[[Path], Path | None]
) -> None:
    made(tmp_path / shows, "127.0.0.1" if shows == "own" else "10.9.8.7")
    with (
        served(tmp_path / shows) as (url, shown),
        Transport(url, ca_file=trusts(tmp_path), patience=60) as transport,
        pytest.raises(KeyNotAuthentic, match="--ca-file"),
    ):
        AnalystClient(transport, "token").identity()
    assert shown == []
