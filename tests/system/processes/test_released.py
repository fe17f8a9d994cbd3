"""What a release stored is read: an analyst's backup of each database, and homes.

``COTERIE_WRITE_RELEASED=1 pytest -n 0`` of this file plays a session and writes the files
of the version that is under way; those of earlier releases are never written again.
"""

import json
import os
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from support.analyst_process import House
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api, in_process

from analyst_service.backups import back_up, restore_backup
from analyst_service.database import Database
from analyst_service.settings import Settings
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator, Party

FOLDER = Path(__file__).parent / "released"
LAYOUT = Layout.lattice(3)
TABLES = [load_iris().data[part::3] for part in range(3)]
PARAMS = LosslessFederated(n_clusters=3)


def coordinator_of(api: Api, stored: Path, key: str) -> Coordinator:
    home = stored / "coordinator"
    return Coordinator("http://127.0.0.1", key, home=home, analyst=api.connect())


def write(kind: str, url: str, folder: Path) -> None:
    """Play a session, and pack homes, a backup, the labels and what opens the session."""
    stored = folder / "written"
    stored.mkdir()
    with in_process(folder / "api", url, driven=True) as api:
        house, key = House(api, stored, fixed=False), api.key()
        house.coordinator = coordinator_of(api, stored, key)
        results = house.run(house.open("released", PARAMS, LAYOUT), TABLES)
        labels = {slot: result.labels.tolist() for slot, result in results.items()}
        invitations = {
            slot: str(party.invitation) for slot, party in house.last.items()
        }
        opens = {"key": key, "invitations": invitations, "labels": labels}
        (stored / "opens.json").write_text(json.dumps(opens))
        service = api.service
        back_up(service.database, service.blobs, service.institution, stored / "backup")
    FOLDER.mkdir(exist_ok=True)
    name = f"{version('coterie').removesuffix('.dev0')}-{kind}.tar.xz"
    with tarfile.open(FOLDER / name, "w:xz") as archive:
        archive.add(stored, ".")


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_what_releases_stored_is_read(
    kind: str, databases: Databases, tmp_path: Path
) -> None:
    if "COTERIE_WRITE_RELEASED" in os.environ:
        with databases.current(kind, tmp_path) as url:
            write(kind, url, tmp_path)
    archives = sorted(FOLDER.glob(f"*-{kind}.tar.xz"))
    assert archives
    for archive in archives:
        stored = tmp_path / archive.stem
        with tarfile.open(archive) as packed:
            packed.extractall(stored, filter="data")
        with databases.empty(kind, stored) as url:
            check(stored, url)


def check(stored: Path, url: str) -> None:
    """Restore and migrate an analyst; let coordinator and parties go on beside it."""
    opens = json.loads((stored / "opens.json").read_text())
    settings = Settings(data_dir=stored / "analyst", database_url=url)
    database = Database(settings.database)
    restore_backup(stored / "backup", database, settings)
    database.close()
    with in_process(stored / "analyst", url, driven=True) as api:
        session = coordinator_of(api, stored, opens["key"]).session("released")
        assert session.status().state == "completed"
        assert session.audit().verified_entries()
        for (slot, text), table in zip(
            opens["invitations"].items(), TABLES, strict=True
        ):
            party = Party.join(text, home=stored / slot, analyst=api.connect())
            assert party.run(table).labels.tolist() == opens["labels"][slot]
        house = House(api, stored, fixed=False)
        results = house.run(house.open("next", PARAMS, LAYOUT), TABLES)
        assert [len(result.labels) for result in results.values()] == [50, 50, 50]
