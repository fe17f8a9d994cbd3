"""What an earlier release wrote: its database, its blobs, the homes of its parties.

``released/make.py`` wrote the archives with the commands of that release. Every session
of them is found: two are over and stay readable, two are half way and one waits for a
party: these end, as this release speaks later versions of their protocols.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api, in_process

from analyst_service.storage.database import Database
from analyst_service.storage.migrations import head
from clustering_protocols.common.errors import VersionMismatch
from party_sdk.cli import main
from party_sdk.home.policy import Policy
from party_sdk.party.participant import Party

RELEASED = Path(__file__).parent / "released"
SLOTS = ("r1c1", "r2c1")
OLDER = "The session is of protocol '{}' v1, which an older release speaks"
# between two releases the start of llf became another, and so did its risk
OTHER_RISKS = "The terms list other risks than their parameters bring."
WHY_IT_ENDS = {
    "0.2.0": {
        "dc-half": OLDER.format("dc"),
        "llf-half": OLDER.format("llf"),
        "llf-new": OLDER.format("llf"),
    },
    "schema-0016": {
        "dc-half": OLDER.format("dc"),
        "llf-half": OTHER_RISKS,
        "llf-new": OTHER_RISKS,
    },
}
Run = Callable[..., Result]


@pytest.fixture
def released(release: str, tmp_path: Path) -> Path:
    """The folder of a release: data folder, homes, tables and held.json."""
    with tarfile.open(RELEASED / f"{release}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def run(released: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run an administrator's command over that data folder."""
    monkeypatch.setenv("COTERIE_DATA_DIR", str(released / "analyst"))
    monkeypatch.setenv("COTERIE_DATABASE_URL", "")
    return lambda *words: CliRunner().invoke(main, words)


def held(released: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((released / "held.json").read_text())
    return found


def revision(released: Path) -> str | None:
    database = Database(f"sqlite:///{released / 'analyst' / 'coterie.db'}")
    try:
        return database.revision()
    finally:
        database.close()


def party(released: Path, api: Api, session: str, slot: str) -> Party:
    home = released / "homes" / session
    risks = frozenset(json.loads((home / "risks.json").read_text()))
    return Party.join(
        json.loads((home / "invitations.json").read_text())[slot],
        policy=Policy(accepted_risks=risks, least_known=0),
        home=home / slot,
        analyst=api.connect(),
    )


def table(released: Path, slot: str) -> Path:
    return released / "tables" / f"{slot}.csv"


def labels_written(released: Path, session: str, slot: str) -> list[int]:
    """Return the labels that the released command wrote."""
    path = released / "homes" / session / f"{slot}-labels.csv"
    with path.open() as file:
        return [int(line["label"]) for line in csv.DictReader(file)]


ON_DATABASES = [
    *(pytest.param("0.2.0", *each.values, marks=each.marks) for each in BOTH_DATABASES),
    pytest.param("schema-0016", "sqlite"),
]


@pytest.mark.parametrize(("release", "kind"), ON_DATABASES)
def test_what_a_release_held_is_copied_brought_up_and_read(
    kind: str,
    release: str,
    released: Path,
    run: Run,
    databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, key = held(released), held(released)["key"]
    copied = run("backup", str(released / "monday"))
    assert copied.exit_code == 0, copied.output
    with databases.empty(kind, released) as url:
        monkeypatch.setenv("COTERIE_DATA_DIR", str(released / "new"))
        monkeypatch.setenv("COTERIE_DATABASE_URL", url)
        signed = copied.stderr.rpartition("key ")[2].strip(" .\n")
        words = ("restore", str(released / "monday"), "--fingerprint", signed)
        restored = run(*words)
        assert restored.exit_code == 0, restored.output
        with in_process(released / "new", url, driven=True) as api:
            for session, then in before["sessions"].items():
                now = api.send("GET", f"/v1/sessions/{session}", key).json()
                check_standing(now, then, WHY_IT_ENDS[release].get(session, ""))
            for slot in SLOTS:
                finished = party(released, api, "dc-done", slot).result()
                written = labels_written(released, "dc-done", slot)
                assert finished.labels.tolist() == written
            for session in ("dc-done", "llf-done"):
                check_readable(released, api, key, session)
            with pytest.raises(VersionMismatch, match="open it anew"):
                party(released, api, "dc-half", "r1c1").run(
                    table(released, "r1c1"), id_column="id"
                )


def check_standing(now: dict[str, Any], then: dict[str, Any], why: str) -> None:
    """A session is as it was, unless it is one that was ended."""
    if not why:
        assert (now["state"], now["round"]) == (then["state"], then["round"])
        return
    assert (now["state"], now["reason"]) == ("cancelled", "version-mismatch")
    assert why in now["detail"]


def check_readable(released: Path, api: Api, key: str, session: str) -> None:
    """Its audit and the results of all parties are there as they were."""
    path = f"/v1/sessions/{session}"
    assert api.send("GET", f"{path}/audit", key).json()["lines"]
    for slot in SLOTS:
        kept = released / "homes" / session / slot / "parties" / session / slot
        token = json.loads((kept / "identity.json").read_text())["token"]
        answer = api.send("GET", f"{path}/result", token)
        assert answer.content == (kept / "result.arrays").read_bytes()


@pytest.mark.parametrize("release", ["0.2.0"])
def test_a_backup_of_an_older_schema_changes_nothing(released: Path, run: Run) -> None:
    database = released / "analyst" / "coterie.db"
    schema, rows = revision(released), dump(database)
    made = run("backup", str(released / "monday"))
    assert made.exit_code == 0, made.output
    manifest = json.loads((released / "monday" / "manifest.json").read_text())
    assert manifest["revision"] == schema == revision(released)
    assert schema != head()
    assert dump(database) == rows
    blobs = {each.name for each in (released / "analyst/blobs").glob("??/*")}
    copies = {each.name for each in (released / "monday/blobs").glob("??/*")}
    assert copies
    assert copies <= blobs


def dump(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("release", ["0.2.0"])
def test_migrating_names_and_ends_what_cannot_go_on(run: Run) -> None:
    done = run("migrate")
    assert done.exit_code == 0, done.output
    assert f"from revision 0009 to {head()}" in done.output
    states = {
        "dc-half": "collecting",
        "llf-half": "collecting",
        "llf-new": "recruiting",
    }
    for session, state in states.items():
        why = WHY_IT_ENDS["0.2.0"][session]
        assert f"Ended: {session} ({state}). {why}" in done.output
    assert "3 open sessions were ended" in done.output
    again = run("migrate")
    assert f"The schema is current: revision {head()}." in again.output
    assert "Ended" not in again.output


@pytest.mark.parametrize("release", ["0.2.0"])
def test_an_older_schema_is_refused_with_the_remedy(released: Path, run: Run) -> None:
    refused = run("serve")
    assert refused.exit_code == 1
    assert "run 'coterie backup FOLDER', then 'coterie migrate'" in refused.output
    assert revision(released) == "0009"


@pytest.mark.parametrize("release", ["schema-0016"])
@pytest.mark.parametrize("words", [["serve"], ["migrate"], ["backup", "monday"]])
def test_every_command_refuses_a_newer_schema_in_one_message(
    words: list[str], released: Path, run: Run
) -> None:
    with closing(sqlite3.connect(released / "analyst" / "coterie.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    refused = run(*words)
    assert refused.exit_code == 1
    assert "schema 9999 of a newer release" in refused.output
    assert "Install the newer release." in refused.output
    assert "restore a backup" in refused.output
    assert "coterie migrate" not in refused.output  # which would lead in a circle
    assert revision(released) == "9999"
