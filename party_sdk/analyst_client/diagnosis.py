"""Diagnose this machine and its connection to an analyst, with a remedy for each fault.

No session data are sent. Of an invitation, only the address is used.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    Internal,
    InvalidParameters,
    Unavailable,
    VersionMismatch,
)
from clustering_protocols.numerics.kernels import IS_BUILT
from clustering_protocols.wire.answers import AnalystIdentity
from coterie.build import read_build
from party_sdk.analyst_client.connections import fetch, proxy_of
from party_sdk.analyst_client.requests import parse_answer, raise_problem
from party_sdk.analyst_client.transport import (
    authority_file,
    explain_failure,
    is_proxy_refusal,
    open_http,
)
from party_sdk.home.identities import OwnIdentity
from party_sdk.home.store import FILE, store_of

_MAX_CLOCK_SECONDS: Final = 60.0
_MIN_FREE_BYTES: Final = 1 << 30
_TIMEOUT_SECONDS: Final = 10.0
_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK_KINDS: Final = (
    "nfs", "cifs", "smb", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "9p",
    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of a single diagnostic check.

    check: the name of the check, a single word.
    text: a sentence about the outcome.
    remedy: what to do; empty if there is no problem.
    is_optional: whether the remedy is only a recommendation.
    """

    check: str
    text: str
    remedy: str = ""
    is_optional: bool = False

    @property
    def is_ok(self) -> bool:
        """Return whether no action is required."""
        return self.is_optional or not self.remedy


def check_home(home: Path) -> Iterator[CheckResult]:
    """Check the versions, file permissions and free disk space of this machine."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield CheckResult("versions", f"coterie {read_build()}, Python {python}.")
    if not IS_BUILT:
        yield CheckResult(
            "kernels",
            "The compiled kernels are missing: sessions compute in numpy, ten times slower.",
            "Install a C compiler (gcc), then coterie again. Results are the same.",
            is_optional=True,
        )
    if not home.exists():
        yield CheckResult("home", f"{home} is created on first use.")
    else:
        yield from _check_permissions(home)
    folder = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    space = f"{free / (1 << 30):.1f} GiB are free in {folder}"
    if free < _MIN_FREE_BYTES:
        remedy = "Free at least 1 GiB, or choose another --home."
        yield CheckResult("disk", f"Only {space}.", remedy)
    else:
        yield CheckResult("disk", f"{space}.")


def _check_permissions(home: Path) -> Iterator[CheckResult]:
    open_to_others = [
        path
        for path in (home, home / FILE)
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    for path in open_to_others:
        mode = "700" if path.is_dir() else "600"
        text = f"Other users of this machine may read or enter {path}."
        yield CheckResult("home", text, f"chmod {mode} {path}")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        text = f"You cannot read and write in {home}."
        yield CheckResult("home", text, "Run as its owner, or choose another --home.")
    elif not open_to_others:
        yield CheckResult("home", f"{home} is yours alone.")
    if kind := find_network_file_system(home):
        text = f"{home} is on a network file system ({kind}), where locks may not work."
        yield CheckResult("home", text, "Choose a --home on a disk of this machine.")
    if damage := store_of(home).find_damage():
        yield CheckResult("database", damage, "Restore a copy of the home.")
    elif OwnIdentity(home).stored:
        yield CheckResult("key", "The institution's key is there.")
    else:
        text = "The institution has no key yet: it is created on first use."
        yield CheckResult("key", text)


def find_network_file_system(home: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the network file system that contains a folder, or ''.

    mounts: the mount table of the kernel, which only Linux provides.
    """
    if not mounts.exists():
        return ""
    resolved = home.resolve()
    kinds: dict[Path, str] = {}
    for line in os.fsdecode(mounts.read_bytes()).splitlines():
        mounted, _, file_system = line.partition(" - ")
        point = re.sub(
            r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mounted.split()[4]
        )
        kinds[Path(point)] = file_system.split()[0]
    folders = (resolved, *resolved.parents)
    kind = next((kinds[folder] for folder in folders if folder in kinds), "")
    return kind if kind.startswith(_NETWORK_KINDS) else ""


def check_analyst(
    url: str, *, now: Callable[[], datetime] | None = None
) -> Iterator[CheckResult]:
    """Check the connection to an analyst step by step, up to the first failure.

    now: the clock to compare with the analyst's; by default, the clock of this machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = proxy_of(url)
    if proxy is not None:
        address = urlsplit(proxy)
        name = (
            f"{address.hostname}:{address.port}" if address.port else address.hostname
        )
        text = (
            f"Requests to {host} go through the proxy {name} (HTTPS_PROXY, NO_PROXY)."
        )
        yield CheckResult("proxy", text)
    else:
        yield CheckResult("proxy", f"No proxy is used for {host}.")
        direct = list(_check_connection(host, port))
        yield from direct
        if not direct[-1].is_ok:
            return
    yield from _check_answer(url, now or (lambda: datetime.now(UTC)))


def _check_connection(host: str, port: int) -> Iterator[CheckResult]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        remedy = (
            "Check the invitation's address; ask your IT whether the name resolves."
        )
        yield CheckResult("address", f"The name {host} does not resolve.", remedy)
        return
    addresses = ", ".join(sorted({str(entry[4][0]) for entry in entries}))
    yield CheckResult("address", f"{host} is {addresses}.")
    try:
        socket.create_connection((host, port), _TIMEOUT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or "no answer"
        yield CheckResult(
            "connection",
            f"No connection to {host}, port {port}: {reason}.",
            f"Ask your IT to let TCP out to {host}:{port}, or name the proxy in "
            "HTTPS_PROXY; ask the coordinator whether the analyst runs.",
        )
        return
    yield CheckResult("connection", f"{host}, port {port} answers.")


def _check_answer(url: str, now: Callable[[], datetime]) -> Iterator[CheckResult]:
    """Check TLS, the type of server and the clock, based on a single response."""
    begin = now()
    try:
        with open_http(url, seconds=_TIMEOUT_SECONDS) as http:
            answer = fetch(http, http.build_request("GET", "/v1/identity"))
    except httpx.HTTPError as error:
        yield _explain_failure(error, httpx.URL(url))
        return
    except GuardRefused as error:
        yield CheckResult("analyst", error.detail, error.remedy)
        return
    end = now()
    if url.startswith("https"):
        authority = (
            "the authority of COTERIE_CA_FILE"
            if authority_file()
            else "an authority trusted here"
        )
        text = f"The certificate is valid, and was issued by {authority}."
    else:
        text = "Plain http: use it only on this machine or a protected network."
    yield CheckResult("TLS", text)
    yield _identify_peer(url, answer)
    yield _compare_clocks(answer.headers.get("date"), begin + (end - begin) / 2)


def _identify_peer(url: str, answer: httpx.Response) -> CheckResult:
    """Return whether an analyst answered, or a proxy or another server in its place."""
    try:
        raise_problem(answer)
        parse_answer(AnalystIdentity, answer.content)
    except (Internal, InvalidParameters, VersionMismatch):
        pass  # some other server answered
    except Unavailable as error:
        return CheckResult(
            "analyst",
            f"The analyst is there, but cannot answer now: {error.detail}",
            "Wait and try again. If that fails, tell the administrator of the analyst.",
        )
    except CoterieError as error:
        return CheckResult(
            "analyst", f"The analyst refuses: {error.detail}", error.remedy
        )
    else:
        return CheckResult("analyst", "An analyst answers.")
    return CheckResult(
        "analyst",
        f"Something answers at {url} (status {answer.status_code}), but it is not an analyst.",
        "Check the address; a proxy or a firewall may answer in its place.",
    )


def _explain_failure(error: httpx.HTTPError, url: httpx.URL) -> CheckResult:
    if (final := explain_failure(error, url)) is not None:
        check = "proxy" if is_proxy_refusal(error) else "TLS"
        return CheckResult(check, final.detail, final.remedy)
    scheme = "" if url.scheme == "https" else "http:// or https://, and "
    remedy = f"Check {scheme}the proxy; ask the coordinator whether the analyst runs."
    return CheckResult(
        "analyst", "The connection was made, but no answer came.", remedy
    )


def _compare_clocks(header: str | None, local_time: datetime) -> CheckResult:
    try:
        stated = parsedate_to_datetime(header or "")
    except ValueError:
        return CheckResult("clock", "The analyst does not say what time it is.")
    # a time with the zone -0000 has no tzinfo
    stated = stated.replace(tzinfo=stated.tzinfo or UTC)
    seconds = (local_time - stated).total_seconds()
    if abs(seconds) <= _MAX_CLOCK_SECONDS:
        text = "This clock and the analyst's agree within a minute."
        return CheckResult("clock", text)
    direction = "ahead of" if seconds > 0 else "behind"
    return CheckResult(
        "clock",
        f"This clock is {abs(seconds):,.0f} seconds {direction} the analyst's.",
        "One of the two clocks is wrong; check this one with NTP, then ask the administrator.",
    )
