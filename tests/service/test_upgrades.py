"""An analyst of the release before this one: its database, and a session under way.

``released/0.2.0`` is a backup of what an analyst of 0.2.0 held, whose session is in its
first round; ``released/0.2.0.json`` is what coordinator and parties held then.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api, ByHand, in_process

from analyst_service.configuration.settings import Settings
from analyst_service.storage.database import Database
from analyst_service.storage.migrations import head
from clustering_protocols import simulation
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.terms import Layout
from tests.service.backups import brought_back

RELEASED = Path(__file__).parent / "released"
PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names


class Resumed(ByHand):
    """A session that is there already, and what its people held."""

    def __init__(self, api: Api, session_id: str, held: Path) -> None:
        kept = json.loads(held.read_text())
        self.api, self.parts, self.id = api, PARTS, session_id
        self.path = f"/v1/sessions/{session_id}"
        self.key, self.codes, self.tokens = kept["key"], kept["codes"], kept["tokens"]
        self.joins = Counter(kept["joins"])
        self.keys = simulation.entropies(7, session_id, PARTS.layout.names)
        self.coordinator = Institution.derive(self.keys[simulation.COORDINATOR])
        self.journals, self.memories = {}, {}


@pytest.mark.parametrize("kind", BOTH_DATABASES)
@pytest.mark.parametrize("release", ["0.2.0"])
def test_a_session_of_an_earlier_release_is_read_and_ends(
    kind: str, release: str, databases: Databases, tmp_path: Path
) -> None:
    source = tmp_path / "backup"
    shutil.copytree(RELEASED / release, source)
    before = json.loads((source / "manifest.json").read_text())
    assert before["coterie"] == release
    assert before["revision"] < head()
    with databases.empty(kind, tmp_path) as url:
        settings = Settings(data_dir=tmp_path / "api", database_url=url)
        brought_back(source, settings)  # and migrates
        database = Database(settings.database)
        assert database.is_current()
        database.close()
        with in_process(tmp_path / "api", url) as api:
            session = Resumed(api, "s-old", RELEASED / f"{release}.json")
            status = session.status
            assert (status["state"], status["round"]) == ("cancelled", 1)
            assert status["reason"] == "version-mismatch"
            assert "which an older release speaks" in status["detail"]
            assert {slot["state"] for slot in status["slots"]} == {"joined"}
            audit = api.send("GET", f"{session.path}/audit", session.key).json()
            assert len(audit["lines"]) > 3
