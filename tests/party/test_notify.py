"""Mail to parties and coordinators, and an analyst that knows neither."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import Result
from support.in_process import Api, StartApi
from support.terminal import coterie

from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client import http_analyst
from party_sdk.application.home import Home

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
ALONE = simulation.split(
    np.random.default_rng(1).normal(size=(20, 3)), Layout.lattice(1), seed=1
)
A = PARTS.layout.names[0]
[SLOT] = ALONE.layout.names
MAIL = {"smtp_server": "smtp://127.0.0.1", "smtp_from": "a@b.example"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def invoke(api: Api, *words: str, expect: int = 0) -> Result:
        monkeypatch.setattr(http_analyst, "connect", lambda *_, **__: api.connect())
        monkeypatch.setattr(Home, "connect", lambda *_: api.connect())
        return coterie(*words, expect=expect)

    return invoke


def test_coordinators_and_parties_manage_notice_addresses(
    start_api: StartApi, run: Callable[..., Result], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with start_api(**MAIL) as api:
        session = api.open(Dummy(), PARTS)
        with session.accept(A, home) as party:
            party.enrol(PARTS.data[A])
        asked = ("session", "--url", "http://127.0.0.1", "--key", session.key)
        own = ("party", "status", session.id, A, "--home", str(home))
        for words in ((*asked, "show", session.id), own):
            made = run(api, *words, "--mail", "desk@ward.example", "--json")
            [line] = json.loads(made.stdout)["receivers"]
            assert line["address"] == "desk@ward.example"
            assert run(api, *words, "--remove", line["id"]).stdout == ""
            refused = run(api, *words, "--mail", "nobody", expect=5)
            assert "one mail address" in refused.output


def test_run_registers_the_address_named_at_join(
    start_api: StartApi, run: Callable[..., Result], tmp_path: Path
) -> None:
    home, desk = tmp_path / "home", "desk@ward.example"
    with start_api(**MAIL, driven=True) as api:
        session = api.open(Dummy(), ALONE)
        invitation = tmp_path / "invitation"
        invitation.write_text(session.invitation(SLOT))
        here = ("--home", str(home))
        words = (f"@{invitation}", "--notify", desk, "--notify", "a@[127.0.0.1]")
        shown = run(api, "party", "terms", words[0], "--json", *here)
        accept = ("--accept", json.loads(shown.stdout)["consent"])
        hook = ("--notify", "https://hooks.example")
        refused = run(api, "party", "run", words[0], *hook, *here, expect=2)
        assert "is not a mail address" in refused.output
        joined = run(api, "party", "run", *words, *accept, *here)
        assert f"{desk} is notified once you" in joined.stderr
        assert "ck_" not in joined.output
        notes: list[Mapping[str, Any]] = []
        asker = Mock(is_present=False, show_notes=notes.append)
        with session.accept(SLOT, home, asker=asker) as party:
            party.run(ALONE.data[SLOT])
            party.run(ALONE.data[SLOT])
            requests = party.stored.load_identity().told
            assert [bool(request.id) for request in requests] == [True, False]
            assert "ward.example" not in repr(requests)
        told = [key for note in notes for key in note]
        assert told == ["a@[127.0.0.1] is not notified"]
        own = ("party", "status", session.id, SLOT, *here)
        listed = run(api, *own).stdout
        assert "named when joining" in listed
        assert "a@[127.0.0.1] is not notified" in listed
        shown = json.loads(run(api, *own, "--json").stdout)
        left = [each for each in shown["notified"] if each["id"]]
        assert len(left) == 1, "left once, whatever is run again"
