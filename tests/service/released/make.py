"""Make what an analyst and its parties hold: sessions that are over, or half way.

Run with the `coterie` of the release that is to write it, from its own environment:

    git worktree add ../released 936cbc7      # the end of 0.2.0
    make -C ../released .venv/runs
    python tests/service/released/make.py ../released/.venv/bin/coterie NAME

It writes NAME.tar.xz beside this file: the analyst's data folder (SQLite, blobs and its
key), the homes of coordinator and parties, their tables, and held.json with the
coordinator's key and where each session stood. The secrets are those of tests.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:18447"
LONG = "31622400"  # seconds: a year, for anyone who tries the fixture later
SLOTS = ("r1c1", "r2c1")
SESSIONS = {
    # name: protocol, parameters, the round that parties are stopped in (0: none joined)
    "dc-done": ("dc", {"n_clusters": 2, "anchor": {"n_rows": 40}}, None),
    "dc-half": ("dc", {"n_clusters": 2, "anchor": {"n_rows": 40}}, 4),
    "llf-done": ("llf", {"n_clusters": 2, "allow_two_parties": True}, None),
    "llf-half": ("llf", {"n_clusters": 2, "allow_two_parties": True}, 5),
    "llf-new": ("llf", {"n_clusters": 2, "allow_two_parties": True}, 0),
}


class Release:
    """The commands of one release, over one folder."""

    def __init__(self, coterie: Path, folder: Path) -> None:
        self.coterie, self.folder = str(coterie.absolute()), folder
        self.environment = os.environ | {
            "COTERIE_DATA_DIR": str(folder / "analyst"),
            "COTERIE_DATABASE_URL": "",
            "COTERIE_POLL_SECONDS": "0.05",
            "COTERIE_TOKEN_SECONDS": LONG,
            "COTERIE_RETENTION_SECONDS": LONG,
            "COTERIE_URL": ADDRESS,
        }

    def call(self, *words: str) -> str:
        return subprocess.run(
            [self.coterie, *words],
            env=self.environment,
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.coterie, *words],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    @contextmanager
    def serving(self) -> Iterator[None]:
        self.call("migrate")
        key = self.call("key", "create", "--label", "tests", "--days", "3650").strip()
        self.environment["COTERIE_KEY"] = key
        process = self.start("serve", "--port", ADDRESS.rpartition(":")[2])
        try:
            self._wait(process)
            yield
        finally:
            process.terminate()
            process.wait(60)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{ADDRESS}/v1/protocols", timeout=5).close()
            except OSError:
                assert process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("the analyst does not start")

    def status(self, session: str) -> dict[str, Any]:
        home = str(self.folder / "homes" / session)
        said: dict[str, Any] = json.loads(
            self.call("session", "--home", home, "show", session, "--json")
        )
        return said


def play(release: Release, session: str) -> None:
    """Take a session as far as it is wanted."""
    protocol, params, until = SESSIONS[session]
    home = release.folder / "homes" / session
    home.mkdir(parents=True)
    given = [f"--param={name}={json.dumps(value)}" for name, value in params.items()]
    opened = json.loads(
        release.call(
            *("session", "--home", str(home), "create", session, "--id", session),
            *("--protocol", protocol, "--row-groups", "2", "--json", "--seed", "3"),
            *("--join-within", LONG, "--answer-within", LONG, *given),
        )
    )
    (home / "invitations.json").write_text(json.dumps(opened["invitations"]))
    (home / "risks.json").write_text(json.dumps(list(opened["risks"])))
    parties = [
        release.start(*taking_part(home, slot, opened))
        for slot in SLOTS[: 1 if until == 0 else None]
    ]
    if until is None:
        ended = [each.wait(120) for each in parties]
        assert ended == [0, 0], (release.folder / "log").read_text()
        return
    joined = 1 if until == 0 else 2
    while True:
        said = release.status(session)
        there = sum(slot["state"] == "joined" for slot in said["slots"])
        if there == joined and said["round"] >= until:
            break
        time.sleep(0.01)
    for each in parties:
        each.send_signal(signal.SIGKILL)
        each.wait(60)
    assert release.status(session)["state"] in {"collecting", "recruiting"}


def taking_part(home: Path, slot: str, opened: dict[str, Any]) -> list[str]:
    accepted = [word for risk in opened["risks"] for word in ("--accept-risk", risk)]
    return [
        *("party", "run", opened["invitations"][slot], "--home", str(home / slot)),
        *("--data", str(home.parents[1] / "tables" / f"{slot}.csv")),
        *("--labels", str(home / f"{slot}-labels.csv"), "--least-known", "0"),
        *("--id-column", "id", *accepted),
    ]


def write_tables(folder: Path) -> None:
    folder.mkdir()
    drawn = random.Random(0)
    for slot in SLOTS:
        lines = ["id,a,b,c"]
        for row in range(30):
            place = 6.0 * (row % 2)
            values = [f"{drawn.gauss(place, 1.0):.4f}" for _ in range(3)]
            lines.append(",".join([f"{slot}-{row}", *values]))
        (folder / f"{slot}.csv").write_text("\n".join(lines) + "\n")


def main(coterie: Path, name: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tables(folder / "tables")
        release = Release(coterie, folder)
        with release.serving():
            for session in SESSIONS:
                play(release, session)
            stood = {session: release.status(session) for session in SESSIONS}
        key = release.environment["COTERIE_KEY"]
        held = {"key": key, "address": ADDRESS, "sessions": stood}
        (folder / "held.json").write_text(json.dumps(held, indent=1))
        with sqlite3.connect(next((folder / "analyst").glob("*.db"))) as database:
            database.execute("PRAGMA journal_mode=DELETE")
        database.close()
        target = Path(__file__).parent / f"{name}.tar.xz"
        with tarfile.open(target, "w:xz") as archive:
            for part in ("analyst", "homes", "tables", "held.json"):
                archive.add(folder / part, part)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
