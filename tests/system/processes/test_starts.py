"""What a process imports: no mathematics where none is done, nothing that is not listed.

Each process prints its modules when it ends. A package that is not on the list of its
kind fails the test: anyone who adds one says here that every such start waits for it.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from support.analyst_process import Analyst, Crowd, wait_for

from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout

OURS = {
    "analyst_service", "clustering_protocols", "coterie", "coterie_pages", "party_sdk", "support",
}  # fmt: skip
LISTING = {"click", "colorama"}  # the latter on Windows
VALUES = {
    "annotated_types", "cffi", "cryptography", "numpy", "pydantic", "pydantic_core", "rfc8785",
    "typing_extensions", "typing_inspection",
}  # fmt: skip
HTTP = {"anyio", "certifi", "h11", "httpcore", "httpx", "idna", "sniffio"}
CLIENT = LISTING | VALUES | HTTP
SERVICE = CLIENT | {  # cython_runtime is of uvloop; httpx is what tells people
    "annotated_doc", "cython_runtime", "dotenv", "fastapi", "greenlet", "httptools",
    "opentelemetry", "prometheus_client", "pydantic_settings", "sqlalchemy", "starlette",
    "uvicorn", "uvloop",
}  # fmt: skip
PAGES = {"jinja2", "markupsafe"}
DESK = {
    "cython_runtime",
    "duckdb",
    "httptools",
    "pyarrow",
    "starlette",
    "uvicorn",
    "uvloop",
}
MATHEMATICS = {"fastcluster", "scipy", "sklearn"}
# httpx and pyarrow import these where they are installed, which they are for tests alone.
OPTIONAL = {"cloudpickle", "pygments", "rich"}

PROGRAM = str(Path(__file__).with_name("told_imports.py"))


def packages(names: list[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in names}
    public = {top for top in tops if not top.startswith("_")}
    return public - OURS - sys.stdlib_module_names


def told(tmp_path: Path, program: str, *words: str, **environment: str) -> set[str]:
    out = tmp_path / "imports.json"
    done = subprocess.run(
        [sys.executable, program, *words],
        env=os.environ | environment | {"COTERIE_TEST_IMPORTS": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return packages(json.loads(out.read_text()))


@pytest.mark.parametrize(
    "words", [[], ["party", "run"], ["simulate"], ["serve"]], ids=" ".join
)
def test_help_imports_nothing_but_what_prints_it(
    tmp_path: Path, words: list[str]
) -> None:
    assert told(tmp_path, PROGRAM, *words, "--help") <= LISTING


class Told(Analyst):
    """An analyst that tells its imports when it is asked to end."""

    def __init__(self, data_dir: Path) -> None:
        out = data_dir / "imports.json"
        super().__init__(
            data_dir,
            environment={"COTERIE_TEST_IMPORTS": str(out)},
            program=PROGRAM,
            cold=True,
        )
        self.out = out

    def imports(self) -> set[str]:
        self.kill(signal.SIGINT)
        return packages(json.loads(self.out.read_text()))


PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(60, 4)), Layout.lattice(3), seed=1
)


def crowd_of(analyst: Analyst, home: Path, params: Params, name: str) -> Crowd:
    return Crowd(analyst, home, params, PARTS, session=name)


def test_an_analyst_hands_out_sessions_without_mathematics(tmp_path: Path) -> None:
    """Creation, joining, checks of every contribution and results, to the end."""
    sessions: dict[str, Params] = {
        "dc": DataCollaboration(n_clusters=2, dimensions="all_but_one"),
        "llf": LosslessFederated(n_clusters=2),
    }
    with Told(tmp_path / "analyst") as analyst:
        for name, params in sessions.items():
            crowd = crowd_of(analyst, tmp_path / name, params, name)
            crowd.start()
            crowd.join()
            wait_for(lambda open_=crowd: open_.session.status().state == "completed")
            crowd.close()
        found = analyst.imports()
    assert {"fastapi", "sqlalchemy"} <= found  # the right process told
    assert found <= SERVICE | OPTIONAL


def test_coordinating_and_joining_need_no_mathematics(tmp_path: Path) -> None:
    with Analyst(tmp_path / "analyst") as analyst:
        crowd = crowd_of(analyst, tmp_path / "crowd", Dummy(n_clusters=2), "done")
        crowd.start()
        crowd.join()
        wait_for(lambda: crowd.session.status().state == "completed")
        crowd.close()
        here = {
            "COTERIE_URL": analyst.url,
            "COTERIE_KEY": analyst.key,
            "COTERIE_HOME": str(tmp_path / "home"),
        }

        def coterie(*commands: list[str]) -> set[str]:
            given = {"COTERIE_TEST_COMMANDS": json.dumps(commands)}
            return told(tmp_path, PROGRAM, **here, **given)

        create = (
            "session create open --id open --param n_clusters=2 --param dimensions=all"
        )
        create = [*create.split(), "--invitations", str(tmp_path / "letters")]
        shown = [["session", name, "done"] for name in ("show", "report", "audit")]
        assert coterie(create, ["session", "list"], *shown) <= CLIENT | OPTIONAL
        cards = [["new", "North"], ["card"], ["trust", "--list"]]
        assert coterie(*(["identity", *words] for words in cards)) <= LISTING | VALUES
        with analyst.coordinator(tmp_path / "home") as coordinator:
            [invitation] = coordinator.session("open").invite().values()
        from party_sdk.application.home import Home
        from party_sdk.home.policy import Policy

        home = Home(path=tmp_path / "home")
        accepted = [
            "--accept",
            home.terms_sheet(home.fetch_offer(invitation, Policy())).consent,
        ]
        terms = ["party", "terms", invitation]
        written = coterie([*terms, "--out", str(tmp_path / "terms.html")])
        assert PAGES <= written <= CLIENT | OPTIONAL | PAGES
        joined = ["party", "run", invitation, *accepted]
        audited = ["party", "audit", "open", "r1c1"]
        assert coterie(terms, joined, audited) <= CLIENT | OPTIONAL


def test_a_desk_shows_pages_without_mathematics(tmp_path: Path) -> None:
    out = tmp_path / "imports.json"
    folders = ["--home", str(tmp_path / "home"), "--tables", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, PROGRAM, "ui", "--no-browser", "--json", *folders],
        env=os.environ | {"COTERIE_TEST_IMPORTS": str(out)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as desk:
        assert desk.stdout is not None
        link = json.loads(desk.stdout.readline())["link"]
        with httpx.Client(follow_redirects=True) as browser:
            assert "Taking part" in browser.get(link).text
        desk.send_signal(signal.SIGINT)
    found = packages(json.loads(out.read_text()))
    assert PAGES <= found <= CLIENT | PAGES | DESK | OPTIONAL


def run_with_agreement(
    tmp_path: Path, program: str, params: Params, *words: str
) -> Any:
    """Run a program on the agreement of a session; return what it prints."""
    agreement = tmp_path / "agreement"
    agreement.write_bytes(
        simulation.build_agreement(
            params, PARTS.layout, PARTS.data, seed=1, session="s"
        )
    )
    command = [sys.executable, "-c", program, str(agreement), *words]
    done = subprocess.run(command, check=True, capture_output=True)
    return json.loads(done.stdout)


WORKER = """
import json, sys
from pathlib import Path
from analyst_service import worker
from clustering_protocols import engine
agreement = Path(sys.argv[1]).read_bytes()
engine.begin_session(agreement)
if sys.argv[2] == "prepared":
    engine.import_analyst_roles(agreement)
print(json.dumps(list(sys.modules)))
"""


@pytest.mark.parametrize(
    ("params", "when", "mathematics"),
    [
        (Dummy(), "prepared", set()),
        (DataCollaboration(n_clusters=2, dimensions="all_but_one"), "began", set()),
        (
            DataCollaboration(n_clusters=2, dimensions="all_but_one"),
            "prepared",
            {"scipy", "sklearn"},
        ),
        (LosslessFederated(n_clusters=2), "prepared", set()),
    ],
    ids=["dummy", "dc, begun", "dc", "llf"],
)
def test_a_worker_imports_only_what_its_sessions_need(
    tmp_path: Path, params: Params, when: str, mathematics: set[str]
) -> None:
    found = packages(run_with_agreement(tmp_path, WORKER, params, when))
    assert found & MATHEMATICS == mathematics
    if not mathematics:
        assert found <= VALUES


PARTY = """
import json, sys
from pathlib import Path
from clustering_protocols import engine
from clustering_protocols.terms import agreements
agreement = Path(sys.argv[1]).read_bytes()
engine.import_party_roles(agreements.read_agreement(agreement)[1])
waiting = set(sys.modules)
for stage in engine.load_session(agreement)[1]:
    stage.party()
later = sorted(set(sys.modules) - waiting)
print(json.dumps([sorted(waiting), later]))
"""


def test_a_waiting_party_imports_what_its_answers_need(tmp_path: Path) -> None:
    params = LosslessFederated(n_clusters=2)
    waiting, later = run_with_agreement(tmp_path, PARTY, params)
    assert "clustering_protocols.protocols.llf.kernels" in waiting
    assert not [name for name in later if not name.startswith("clustering_protocols")]
    others = {"dc", "fccm", "omnifc", "pqmds"}
    ours = [name.split(".") for name in waiting if ".protocols." in name]
    assert not others & {parts[2] for parts in ours}
