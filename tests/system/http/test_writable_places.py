"""Whatever the compose files run finds a place for what it writes, and needs no other.

Containers are read-only but for their volumes and tmpfs. Each command of the files runs
here with these places as folders, while every path is noted that it writes to.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.analyst_process import COTERIE
from support.tls import certificate

from tests.system.http.writes import noting, written

from .test_deployment import CONFIGURATION, DOCKER

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

    def run(self, *words: str) -> str:
        """Run a command of the image, at the root, where nothing may be written."""
        assert words[0] == "coterie"
        done = subprocess.run(
            [sys.executable, COTERIE, *map(self.inside, words[1:])],
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def commands() -> dict[str, list[list[str]]]:
    """What the head of the file says to run, by service."""
    found: dict[str, list[list[str]]] = {}
    for service, command in HEAD.findall(COMPOSE):
        found.setdefault(service, []).append(shlex.split(command))
    return found


def test_compose_commands_write_only_into_volumes(tmp_path: Path) -> None:
    certificate(tmp_path)
    analyst = Container(SERVICES["analyst"], tmp_path / "root")
    analyst.run(*SERVICES["migrate"]["command"])
    [make_key, backup, restore] = commands()["analyst"]
    assert (make_key[1], backup[1], restore[1]) == ("key", "backup", "restore")
    assert analyst.run(*make_key).startswith("ck_")
    analyst.run(*backup)
    assert (Path(analyst.inside("/backups")) / "monday" / "backup.json").exists()
    other = Container(SERVICES["analyst"], tmp_path / "other")
    other.run(*SERVICES["migrate"]["command"])
    shutil.copytree(
        analyst.inside("/backups"), other.inside("/backups"), dirs_exist_ok=True
    )
    other.run(*restore)
    allowed = [
        Path(container.inside(place))
        for container in (analyst, other)
        for place in places(container.service)
    ]
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
def test_a_container_has_bounds_no_rights_and_places_for_what_it_writes(
    name: str,
) -> None:
    """Docker's own seccomp profile holds where none is named."""
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert not {"cap_add", "privileged"} & service.keys()
    assert service["security_opt"] == ["no-new-privileges:true"]
    limit = str(service["mem_limit"])
    assert re.fullmatch(r"\d+[mg]|\$\{COTERIE_MEMORY:-\d+g\}", limit)
    assert 0 < service["pids_limit"] <= 2048
    assert service["read_only"] is True
    assert places(service)
    [user] = re.findall(r"^USER (\d+)$", IMAGE, re.MULTILINE)
    if service["image"].startswith("coterie-"):
        assert int(user) > 0
    else:  # the image of prometheus has a user of its own
        assert name == "prometheus" or int(service["user"]) > 0
    if name == "prometheus":
        assert all(each.startswith("127.0.0.1:") for each in service["ports"])
        assert service["profiles"] == ["watch"]
    if service["image"] == "coterie-analyst":
        made = set(re.findall(r"mkdir ([^&]*)&&", IMAGE)[0].split())
        assert made >= {p for p in places(service) if p in {"/data", "/backups"}}
        path = Path(image_environment()["COTERIE_DATA_DIR"])
        assert any(path.is_relative_to(place) for place in places(service))
    # every base image can be named by its digest
    base = service.get("build", {}).get("args", {}).get("BASE", service["image"])
    named = re.fullmatch(r"\$\{COTERIE_[A-Z]+:-(.+)\}", base)
    assert named is not None
    assert "build" not in service or f"ARG BASE={named[1]}\n" in IMAGE


def test_proxy_and_prometheus_write_where_they_may() -> None:
    named = re.findall(
        r"^\s*(?:pid|error_log|access_log|\w+_temp_path)\s+(/\S+?);?(?:\s|$)",
        CONFIGURATION,
        re.MULTILINE,
    )
    assert len(named) == 8
    allowed = ("/dev/", *(f"{place}/" for place in places(SERVICES["proxy"])))
    assert all(path.startswith(allowed) for path in named)
    assert places(SERVICES["prometheus"]) == {"/prometheus"}  # where its image writes
