"""Ways from a party to an analyst: plain HTTP, TLS, and nginx with TLS in front of it."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

CONFIGURATION = Path(__file__).parents[1] / "docker" / "nginx.conf"
NGINX = "/usr/sbin/nginx"
_PATIENCE_SECONDS = 60


def certificate(folder: Path) -> ssl.SSLContext:
    """Write ``tls.pem`` and ``tls.key`` of this machine; return who trusts them."""
    where = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.pem")]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-days", "30", *key, *where, *name]
    subprocess.run(command, check=True, capture_output=True)
    return ssl.create_default_context(cafile=folder / "tls.pem")


@contextmanager
def proxied(folder: Path, port: int, analyst: int) -> Iterator[None]:
    """Run the proxy that is shipped before an analyst's port: other addresses and paths.

    Raises ValueError if the shipped file does not say any more what is replaced here.
    """
    text = CONFIGURATION.read_text()
    for shipped, here in {
        "listen 8443 ssl": f"listen 127.0.0.1:{port} ssl",
        "set $analyst analyst:8000": f"set $analyst 127.0.0.1:{analyst}",
        "/etc/nginx/": f"{folder}/",
        "/tmp/nginx": f"{folder}/nginx",  # noqa: S108  what the shipped file says
        "/dev/stderr warn": f"{folder}/error.log warn",
        "/dev/stdout": f"{folder}/access.log",
    }.items():
        if shipped not in text:
            raise ValueError(f"{CONFIGURATION} does not say {shipped!r}")
        text = text.replace(shipped, here)
    (folder / "nginx.conf").write_text(text)
    command = [NGINX, "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    process = subprocess.Popen([*command, "-e", str(folder / "error.log")])
    try:
        trusted = ssl.create_default_context(cafile=folder / "tls.pem")
        await_answer(f"https://127.0.0.1:{port}/healthz", trusted)
        yield
    finally:
        process.terminate()
        process.wait(30)


def await_answer(url: str, trusted: ssl.SSLContext | None) -> None:
    """Return once an address answers well.

    Raises httpx.HTTPError: what is wrong still after a minute.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            httpx.get(url, verify=trusted or True).raise_for_status()
        except httpx.HTTPError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
