"""The wheel of all packages, in environments that have nothing else of ours.

One has what an analyst and a party need, one what ``pip install coterie`` brings.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from support.analyst_process import free_port, wait_for
from support.repeats import only_in

from tests.system.http.environments import environment, needed

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "coterie",
    "analyst_service",
    "party_sdk",
    "coterie_pages",
    "clustering_protocols",
)
PAGE = """
from coterie_pages.pages import render_html
from support.page_models import sheet
import coterie_pages
assert "site-packages" in coterie_pages.__file__, coterie_pages.__file__
print(render_html(sheet())[:15])
"""
SERVICE = ("serve", "migrate", "key", "backup", "restore")


class Installed(NamedTuple):
    """The programs of an environment, run in a folder of its own."""

    programs: Path
    folder: Path

    def command(self, *words: str) -> list[str]:
        return [str(self.programs / words[0]), *words[1:]]

    def variables(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "COTERIE"))
        }
        return kept | {"COTERIE_HOME": str(self.folder / "home")} | more

    def ended(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            check=False,
        )

    def __call__(self, *words: str, **variables: str) -> str:
        done = self.ended(*words, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def started(self, *words: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        log = self.folder / f"{words[1]}.log"
        with (
            log.open("w") as lines,
            subprocess.Popen(
                self.command(*words),
                cwd=self.folder,
                env=self.variables(**variables),
                stdout=subprocess.PIPE,
                stderr=lines,
                text=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [made] = folder.glob("coterie-*.whl")
    return made


Install = Callable[..., Installed]


@pytest.fixture(scope="module")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Install the wheel with so many of its extras."""

    def made(*extras: str) -> Installed:
        folder = tmp_path_factory.mktemp("empty")
        names = needed("coterie", set(extras))
        return Installed(environment(folder / "venv", wheel, names), folder)

    return made


@pytest.fixture(scope="module")
def run(install: Install) -> Installed:
    """What an analyst has, and a party."""
    return install("analyst")


@pytest.fixture(scope="module")
def bare(install: Install) -> Installed:
    """What ``pip install coterie`` brings."""
    return install()


@pytest.mark.thorough
def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    """Templates, vectors, evidence, migrations: not modules alone."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files |= {
        f"analyst_service/{path.relative_to(ROOT)}"
        for path in (ROOT / "alembic").rglob("*.py")
    }
    assert len(files) > 500
    assert {f"{package}/py.typed" for package in PACKAGES} <= files
    assert files - inside == set()
    assert not [name for name in inside if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.thorough
def test_its_commands_run_where_nothing_else_of_ours_is(
    run: Installed, tmp_path: Path
) -> None:
    helped = run("coterie", "--help")
    for command in ("party", "session", "serve", "migrate", "simulate"):
        assert command in helped
    data = str(tmp_path / "data")
    assert "was created" in run("coterie", "migrate", COTERIE_DATA_DIR=data)
    key = run("coterie", "key", "create", "--label", "x", COTERIE_DATA_DIR=data)
    assert key.startswith("ck_")
    assert "dc" in run("coterie", "protocols")
    page = run("python", "-c", PAGE, PYTHONPATH=str(ROOT / "tests"))
    assert page.lower().startswith("<!doctype html>")


LACKING: dict[str, tuple[tuple[str, ...], str]] = {
    "serve": (("serve",), "analyst"),
    "serve --help": (("serve", "--help"), "analyst"),
    "ui": (("ui", "--no-browser"), "ui"),
    "statistics": (("table", "x.sav"), "statistics"),
}


@pytest.mark.every_python
@pytest.mark.parametrize("what", LACKING)
def test_a_command_without_its_extra_names_it(bare: Installed, what: str) -> None:
    words, extra = LACKING[what]
    (bare.folder / "x.sav").write_bytes(b"$FL2")
    done = bare.ended("coterie", *words)
    assert done.returncode == 5
    told = done.stdout + done.stderr
    assert f"pip install 'coterie[{extra}]'" in told
    assert "Traceback" not in told
    assert "\\u" not in told


def test_commands_that_are_not_installed_are_not_listed(bare: Installed) -> None:
    listed = re.findall(r"^  (\w+) ", bare("coterie", "--help"), re.MULTILINE)
    assert "party" in listed
    assert not {*SERVICE} & {*listed}


@pytest.mark.every_python
class TestRunning:
    """What its wheel installs tries a table, runs an analyst, a party and the desk."""

    pytestmark = only_in("check", "programs of an installed wheel")

    def test_a_table_is_tried(self, run: Installed) -> None:
        run("coterie", "example", "wine")
        run("coterie", "try", "wine/table.csv")
        assert (run.folder / "labels.csv").read_text().count("\n") == 179
        assert (run.folder / "report.html").exists()

    def test_a_bare_party_takes_part_in_a_session_of_an_analyst(
        self, run: Installed, bare: Installed
    ) -> None:
        data, url = str(run.folder / "data"), f"http://127.0.0.1:{free_port()}"
        run("coterie", "migrate", COTERIE_DATA_DIR=data)
        made = run("coterie", "key", "create", "--label", "x", COTERIE_DATA_DIR=data)
        words = ("coterie", "serve", "--port", url.rpartition(":")[2])
        with run.started(*words, COTERIE_DATA_DIR=data, COTERIE_HIDDEN_PROTOCOLS=""):
            wait_for(lambda: is_ready(url))
            at = {"COTERIE_URL": url, "COTERIE_KEY": made.split()[0]}
            created = bare.ended("coterie", *CREATE, "--json", **at)
            assert created.returncode == 0, created.stderr
            document = json.loads(created.stdout)
            [invitation] = document["invitations"].values()
            rows = "id,a,b\n" + "".join(f"r{i},{i % 3},{i % 2}\n" for i in range(30))
            (bare.folder / "rows.csv").write_text(rows)
            shown = bare.ended("coterie", "party", "terms", invitation, "--json")
            accept = ("--accept", json.loads(shown.stdout)["consent"])
            bare("coterie", "party", "run", invitation, *OWN, *accept)
        labels = (bare.folder / "labels.csv").read_text().splitlines()
        assert len(labels) == 31

    def test_the_desk_opens(self, install: Install) -> None:
        desk = install("ui")
        with desk.started("coterie", "ui", "--no-browser", "--json") as process:
            assert process.stdout is not None
            told: dict[str, Any] = json.loads(process.stdout.readline())
            with httpx.Client(follow_redirects=True) as browser:
                assert browser.get(told["link"]).status_code == 200


CREATE = ("session", "create", "Wards", "--protocol", "dummy", "--party", "north=1,1")
OWN = ("--data", "rows.csv", "--id-column", "id", "--labels", "labels.csv")


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
