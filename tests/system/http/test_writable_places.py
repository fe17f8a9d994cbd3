"""Whatever the compose files run finds a place for what it writes, and needs no other.

Containers are read-only but for their volumes and tmpfs. Each command of the files runs
here with these places as folders, while every path is noted that it writes to.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.analyst_process import COTERIE, Analyst, Crowd, free_port, wait_for
from support.tls import certificate

from clustering_protocols.protocols.dummy import Dummy
from tests.system.http.writes import noting, written

from .test_deployment import CONFIGURATION, DOCKER, PARTS

IMAGE = (DOCKER / "Dockerfile").read_text()
COMPOSE = (DOCKER / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
HEAD = re.compile(
    r"^# +docker compose \S+ \S+ run --rm (\w+) (coterie .*)$", re.MULTILINE
)


def places(service: Mapping[str, Any]) -> set[str]:
    """Where a container may write."""
    volumes = [
        each.rsplit("}", 1)[-1].split(":") for each in service.get("volumes", [])
    ]
    mounted = {parts[1] for parts in volumes if parts[2:] != ["ro"]}
    return mounted | set(service.get("tmpfs", []))


def image_environment() -> dict[str, str]:
    """What the image sets."""
    [text] = re.findall(r"^ENV ((?:.*\\\n)*.*)$", IMAGE, re.MULTILINE)
    return dict(each.split("=", 1) for each in shlex.split(text.replace("\\\n", " ")))


@dataclass(frozen=True)
class Container:
    """A service of a compose file on this machine: its places are folders."""

    service: Mapping[str, Any]
    folder: Path

    def inside(self, text: str) -> str:
        """Put the folders of this machine in the place of the container's."""
        known = "|".join(sorted(places(self.service), key=len, reverse=True))

        def here(found: re.Match[str]) -> str:
            own = self.folder / found[0].strip("/")
            own.mkdir(parents=True, exist_ok=True)
            return str(own)

        return re.sub(rf"^(?:{known})(?=/|$)", here, text)

    def environment(self) -> dict[str, str]:
        """The image's and the file's, and nothing of who runs the tests."""
        own = {  # SQLite in the volume stands in for the server
            k: v
            for k, v in self.service.get("environment", {}).items()
            if "$" not in v and not k.startswith("COTERIE_DATABASE_")
        }
        set_here = {**image_environment(), **own, "TMPDIR": "/tmp"}
        return {
            **{name: self.inside(value) for name, value in set_here.items()},
            **noting(self.folder.parent),
            "COTERIE_CERTIFICATE_FILE": str(self.folder.parent / "tls.pem"),
            "COTERIE_HIDDEN_PROTOCOLS": "",  # the test runs a cheap one
            "PATH": "/usr/bin:/bin",
            "HOME": "/home/coterie",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of the image, at the root, where nothing may be written."""
        assert words[0] == "coterie"
        command = [sys.executable, COTERIE, *map(self.inside, words[1:])]
        return subprocess.Popen(
            command,
            env=self.environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> str:
        process = self.start(*words)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        return said


class Elsewhere(Analyst):
    """An analyst that something else runs."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def commands() -> dict[str, list[list[str]]]:
    """What the head of the file says to run, by service."""
    found: dict[str, list[list[str]]] = {}
    for service, command in HEAD.findall(COMPOSE):
        found.setdefault(service, []).append(shlex.split(command))
    return found


def serve(analyst: Container, key: str) -> None:
    """Run the service, and a session to its end."""
    [command] = re.findall(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)
    port = free_port()
    words = [*json.loads(command), "--host", "127.0.0.1", "--port", str(port)]
    with ended(analyst.start(*words)):
        wait_for(lambda: listens(port))
        there = Elsewhere(f"http://127.0.0.1:{port}", key)
        crowd = Crowd(
            there, analyst.folder.parent / "home", Dummy(), PARTS.layout, PARTS.data
        )
        crowd.start()
        assert crowd.labels() == crowd.expected()
        crowd.close()


@pytest.mark.parametrize(
    "served",
    [False, pytest.param(True, marks=pytest.mark.thorough(only=True))],
    ids=["beside the services", "all"],
)
def test_compose_commands_write_only_into_volumes(
    tmp_path: Path, *, served: bool
) -> None:
    certificate(tmp_path)
    analyst = Container(SERVICES["analyst"], tmp_path / "root")
    analyst.run(*SERVICES["migrate"]["command"])
    [make_key, backup] = commands()["analyst"]
    assert (make_key[1], backup[1]) == ("key", "backup")
    key = analyst.run(*make_key).strip()
    if served:
        serve(analyst, key)
    analyst.run(*backup)
    assert (Path(analyst.inside("/backups")) / "monday" / "backup.json").exists()
    allowed = [Path(analyst.inside(place)) for place in places(analyst.service)]
    strays = {
        path
        for path in written(tmp_path)
        if not any(path.is_relative_to(place) for place in allowed)
        and not path.is_relative_to("/dev")
    }
    assert not strays
    assert {"data", "backups"} <= {
        path.relative_to(tmp_path / "root").parts[0]
        for path in written(tmp_path)
        if path.is_relative_to(tmp_path / "root")
    }, "it was noted"


@pytest.mark.parametrize("name", SERVICES)
def test_what_may_not_be_written_to_has_places_that_may(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert places(service)
    if service.get("image") == "coterie-analyst":
        made = set(re.findall(r"mkdir ([^&]*)&&", IMAGE)[0].split())
        assert made >= {p for p in places(service) if p in {"/data", "/backups"}}
        path = Path(image_environment()["COTERIE_DATA_DIR"])
        assert any(path.is_relative_to(place) for place in places(service))


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_has_bounds_and_no_rights(name: str) -> None:
    """Docker's own seccomp profile holds where none is named."""
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(
        r"\d+[mg]|\$\{COTERIE_MEMORY:-\d+g\}", str(service["mem_limit"])
    )
    assert 0 < service["pids_limit"] <= 2048


def test_no_container_of_the_files_is_of_root() -> None:
    [made] = re.findall(r"^USER (\d+)$", IMAGE, re.MULTILINE)
    for name, service in SERVICES.items():
        is_ours = service["image"].startswith("coterie-")
        # prometheus: its image has a user of its own
        user = made if is_ours else service.get("user", "")
        assert name == "prometheus" or int(user) > 0


@pytest.mark.parametrize("name", SERVICES)
def test_every_base_image_can_be_named_by_its_digest(name: str) -> None:
    service = SERVICES[name]
    base = service.get("build", {}).get("args", {}).get("BASE", service["image"])
    variable = re.fullmatch(r"\$\{COTERIE_[A-Z]+:-(.+)\}", base)
    assert variable is not None
    if "build" in service:
        assert f"ARG BASE={variable[1]}\n" in IMAGE


def test_the_proxy_writes_where_it_may() -> None:
    named = re.findall(
        r"^\s*(?:pid|error_log|access_log|\w+_temp_path)\s+(/\S+?);?(?:\s|$)",
        CONFIGURATION,
        re.MULTILINE,
    )
    assert len(named) == 8
    allowed = ("/dev/", *(f"{place}/" for place in places(SERVICES["proxy"])))
    assert all(path.startswith(allowed) for path in named)


def test_prometheus_keeps_figures_in_its_volume() -> None:
    assert places(SERVICES["prometheus"]) == {"/prometheus"}  # where its image writes
