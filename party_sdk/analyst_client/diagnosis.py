"""What stands between this machine and an analyst: each finding with its remedy.

Nothing of a session is sent. An invitation's address is asked, its secrets are not.
"""

from __future__ import annotations

import os
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
    Unavailable,
)
from clustering_protocols.numerics.kernels import IS_BUILT
from coterie.build import read_build
from party_sdk.analyst_client.connections import fetch, is_proxy_refusal, proxy_of
from party_sdk.analyst_client.requests import media_type_of, raise_problem
from party_sdk.analyst_client.transport import (
    authority_file,
    explain_failure,
    open_http,
)
from party_sdk.home.identities import OwnIdentity
from party_sdk.home.store import FILE, store_of

_MOST_SECONDS: Final = 60.0
_LEAST_BYTES: Final = 1 << 30
_PATIENCE: Final = 10.0
_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK_KINDS: Final = (
    "nfs", "cifs", "smb", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "9p",
    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check has found.

    check: what was looked at, in a word.
    said: a sentence.
    remedy: what to do; empty where all is well.
    """

    check: str
    good: bool
    said: str
    remedy: str = ""


def look_at_home(home: Path) -> Iterator[CheckResult]:
    """Yield what is found on this machine: versions, permissions, room."""
    here = ".".join(map(str, sys.version_info[:3]))
    yield _good("versions", f"coterie {read_build()}, Python {here}.")
    if not IS_BUILT:
        said = "No library of kernels: sessions compute in numpy, ten times slower."
        remedy = "Install a C compiler (gcc), then coterie again. Results are the same."
        yield CheckResult(check="kernels", good=True, said=said, remedy=remedy)
    if not home.exists():
        yield _good("home", f"{home} is made on first use.")
    else:
        yield from _permissions(home)
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    told = f"{free / (1 << 30):.1f} GiB are free in {place}"
    if free < _LEAST_BYTES:
        yield _bad(
            "disk", f"Only {told}.", "Free at least 1 GiB, or name another --home."
        )
    else:
        yield _good("disk", f"{told}.")


def _permissions(home: Path) -> Iterator[CheckResult]:
    open_to_others = [
        path
        for path in (home, home / FILE)
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    for path in open_to_others:
        mode = "700" if path.is_dir() else "600"
        said = f"Other users of this machine may read or enter {path}."
        yield _bad("home", said, f"chmod {mode} {path}")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        said = f"You may not read and write in {home}."
        yield _bad("home", said, "Run as its owner, or name another --home.")
    elif not open_to_others:
        yield _good("home", f"{home} is yours alone.")
    if kind := network_file_system(home):
        said = f"{home} lies on a network file system ({kind}): its locks may not hold."
        yield _bad("home", said, "Name a --home on a disk of this machine.")
    if damage := store_of(home).check():
        yield _bad("database", damage, "Put back a copy of the home.")
    elif OwnIdentity(home).stored:
        yield _good("key", "The institution's key is there.")
    else:
        yield _good("key", "No key of the institution yet: it is made on first use.")


def network_file_system(home: Path, mounts: Path = _MOUNTS) -> str:
    """Return the kind of the network file system of a folder; empty if it is on none.

    mounts: what the kernel says of them; other systems than Linux say nothing.
    """
    if not mounts.exists():
        return ""
    place = home.resolve()
    kinds: dict[Path, str] = {}
    for line in mounts.read_text().splitlines():
        mounted, _, described = line.partition(" - ")
        point = mounted.split()[4].encode().decode("unicode_escape")
        kinds[Path(point)] = described.split()[0]
    kind = next((kinds[each] for each in (place, *place.parents) if each in kinds), "")
    return kind if kind.startswith(_NETWORK_KINDS) else ""


def look_at_analyst(
    url: str, *, now: Callable[[], datetime] | None = None
) -> Iterator[CheckResult]:
    """Yield what is found on the way to an analyst; it ends where the way does.

    now: the clock that is held against the analyst's; by default this machine's.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = proxy_of(url)
    if proxy is not None:
        shown = urlsplit(proxy)
        where = f"{shown.hostname}:{shown.port}" if shown.port else f"{shown.hostname}"
        said = (
            f"Requests to {host} go through the proxy {where} (HTTPS_PROXY, NO_PROXY)."
        )
        yield _good("proxy", said)
    else:
        yield _good("proxy", f"No proxy is used for {host}.")
        direct = list(_direct(host, port))
        yield from direct
        if not direct[-1].good:
            return
    yield from _check_answer(url, now or (lambda: datetime.now(UTC)))


def _direct(host: str, port: int) -> Iterator[CheckResult]:
    """Yield whether a name resolves and its port answers."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        remedy = (
            "Check the invitation's address; ask your IT whether the name resolves."
        )
        yield _bad("address", f"The name {host} does not resolve.", remedy)
        return
    addresses = ", ".join(sorted({str(entry[4][0]) for entry in found}))
    yield _good("address", f"{host} is {addresses}.")
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        why = error.strerror or "no answer"
        said = f"No connection to {host}, port {port}: {why}."
        remedy = (
            f"Ask your IT to let TCP out to {host}:{port}, or name the proxy in "
            "HTTPS_PROXY; ask the coordinator whether the analyst runs."
        )
        yield _bad("connection", said, remedy)
        return
    yield _good("connection", f"{host}, port {port} answers.")


def _check_answer(url: str, now: Callable[[], datetime]) -> Iterator[CheckResult]:
    """Yield what an answer of the analyst shows: TLS, who answers, the time."""
    begin = now()
    try:
        with open_http(url, seconds=_PATIENCE) as http:
            answer = fetch(http, http.build_request("GET", "/v1/identity"))
    except httpx.HTTPError as error:
        yield _explain_failure(error, httpx.URL(url))
        return
    except GuardRefused as error:
        yield _bad("analyst", error.detail, error.remedy)
        return
    end = now()
    if url.startswith("https"):
        whose = (
            "the authority of COTERIE_CA_FILE"
            if authority_file()
            else "an authority known here"
        )
        yield _good("TLS", f"The certificate is valid, and from {whose}.")
    else:
        yield _good("TLS", "Plain http: for this machine or a protected network alone.")
    yield _who_answers(url, answer)
    yield _clock(answer.headers.get("date"), begin, end)


def _who_answers(url: str, answer: httpx.Response) -> CheckResult:
    """Return whether an analyst answers, its proxy in its place, or somebody else."""
    if answer.status_code == httpx.codes.OK and "key" in answer.text:
        return _good("analyst", "An analyst answers.")
    try:
        raise_problem(answer.status_code, media_type_of(answer), answer.content)
    except Internal:
        pass  # no problem of the closed list
    except Unavailable as error:
        said = f"The analyst is there, but cannot answer now: {error.detail}"
        remedy = (
            "Wait, and try again; if it stays, tell the administrator of the analyst."
        )
        return _bad("analyst", said, remedy)
    except CoterieError as error:
        return _bad("analyst", f"The analyst refuses: {error.detail}", error.remedy)
    said = f"Something answers at {url} (status {answer.status_code}), but no analyst."
    remedy = "Check the address; a proxy or a firewall may answer in its place."
    return _bad("analyst", said, remedy)


def _explain_failure(error: httpx.HTTPError, url: httpx.URL) -> CheckResult:
    if (final := explain_failure(error, url)) is not None:
        check = "proxy" if is_proxy_refusal(error) else "TLS"
        return _bad(check, final.detail, final.remedy)
    checked = "Check http:// or https://, and the proxy"
    remedy = "Check the proxy" if url.scheme == "https" else checked
    said = "The connection was made, but no answer came."
    return _bad("analyst", said, f"{remedy}; ask the coordinator whether it runs.")


def _clock(told: str | None, begin: datetime, end: datetime) -> CheckResult:
    if told is None:
        return _good("clock", "The analyst does not say what time it is.")
    theirs = parsedate_to_datetime(told)
    middle = begin + (end - begin) / 2
    seconds = (middle - theirs).total_seconds()
    if abs(seconds) <= _MOST_SECONDS:
        return _good("clock", "This clock and the analyst's agree within a minute.")
    fast = "ahead of" if seconds > 0 else "behind"
    said = f"This clock is {abs(seconds):,.0f} seconds {fast} the analyst's."
    remedy = (
        "Set this machine's clock by a time server (NTP): deadlines go by the time."
    )
    return _bad("clock", said, remedy)


def _good(check: str, said: str) -> CheckResult:
    return CheckResult(check=check, good=True, said=said)


def _bad(check: str, said: str, remedy: str) -> CheckResult:
    return CheckResult(check=check, good=False, said=said, remedy=remedy)
