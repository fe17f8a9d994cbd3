"""Files carried by hand: a party that never touches the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.analyst_process import Analyst, Crowd
from support.terminal import ACCEPT, Terminal, opened, read

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidData,
    KeyNotAuthentic,
    NotReady,
)
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.terms import Layout
from coterie import Party, Policy
from party_sdk.offline import (
    AnswerFile,
    AnswerReady,
    Courier,
    NothingMore,
    OfflineAnalyst,
    TaskFile,
    files,
)

ROWS = np.random.default_rng(5).normal(size=(60, 4)) + np.repeat(
    [[0], [9], [18]], 20, 0
)


def carried(crowd: Crowd, slot: str, connected: Path, offline: Path) -> list[int]:
    """Take part by files alone; return the labels. ``offline`` never sees a transport."""
    invitation = crowd.invitations[slot]
    there = Courier.of(connected, invitation)
    policy = Policy(
        accepted_risks=frozenset(crowd.session.status().risks), least_known=0
    )
    policy = replace(policy, minimum_rows=1)
    while True:
        with crowd.analyst.connect() as analyst:
            try:
                task = there.fetch(analyst).to_bytes()
            except NotReady:
                continue
        party = Party.join(
            invitation,
            home=offline,
            entropy=crowd.keys[slot],
            policy=policy,
            analyst=OfflineAnalyst(TaskFile.read(task)),
        )
        try:
            return party.run(crowd.data[slot]).labels.tolist()
        except AnswerReady as leaving:
            answer = leaving.answer.to_signed_bytes(party.identity)
        except NothingMore:
            continue
        with crowd.analyst.connect() as analyst:
            there.send(AnswerFile.read(answer), analyst)


@pytest.mark.parametrize(
    "params",
    [DataCollaboration(n_clusters=3), LosslessFederated(n_clusters=3)],
    ids=["dc", "llf"],
)
def test_a_party_by_files_gets_the_labels_of_a_party_by_network(
    gather: Callable[..., Crowd], params: Params, tmp_path: Path
) -> None:
    parts = simulation.split(ROWS, Layout.lattice(3), 7)
    crowd = gather(params, parts)
    first, *others = parts.layout.names
    crowd.start(*others)
    found = carried(crowd, first, tmp_path / "connected", tmp_path / "offline")
    expected = crowd.expected()
    assert found == expected[first]
    assert crowd.labels() == {slot: expected[slot] for slot in others}


def test_group_secrets_and_token_stay_on_separate_machines(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    parts = simulation.split(ROWS, Layout.lattice(2), 7)
    crowd = gather(DataCollaboration(n_clusters=3), parts)
    crowd.start(*parts.layout.names[1:])
    connected, offline = tmp_path / "connected", tmp_path / "offline"
    carried(crowd, parts.layout.names[0], connected, offline)

    def held(home: Path) -> bytes:
        files = [path for path in home.rglob("*") if path.is_file()]
        return b"".join(path.read_bytes() for path in files)

    secret = crowd.invitations[parts.layout.names[0]].split("/")[6].encode()
    assert secret in held(offline)
    assert secret not in held(connected)
    token = held(connected).partition(b'"token":"')[2].partition(b'"')[0]
    assert token
    assert token not in held(offline)
    names = {path.name for path in connected.rglob("*") if path.is_file()}
    assert names == {"carrier.json"}


# By commands, and what is refused


class Machines:
    """A connected terminal and one without network, and the files between them."""

    def __init__(self, online: Terminal, rows: Path) -> None:
        self.online, self.rows = online, rows
        self.home = online.environment["COTERIE_HOME"]
        self.task = online.folder / "task.coterie"
        self.answered = online.folder / "answer.coterie"

    def fetch(self, *words: object, expect: int = 0) -> Any:
        here = ("--home", self.online.folder / "connected")
        return self.online(
            "party", "step", "fetch", *words, "-o", self.task, *here, expect=expect
        )

    def answer(self, *words: object, expect: int = 0) -> Any:
        data = ("--data", self.rows, "--id-column", "id", "-o", self.answered)
        labels = ("--labels", self.online.folder / "labels.csv")
        step = ("party", "step", "answer", self.task)
        return self.online(*step, *words, *data, *labels, expect=expect)

    def send(self, expect: int = 0) -> Any:
        here = ("--home", self.online.folder / "connected")
        return self.online("party", "step", "send", self.answered, *here, expect=expect)


@pytest.fixture
def machines(online: Terminal, rows: Path) -> Machines:
    return Machines(online, rows)


def test_the_commands_go_from_invitation_to_labels(
    machines: Machines, online: Terminal
) -> None:
    session, invitation = opened(online)
    machines.fetch(invitation)
    refused = machines.answer(invitation, expect=3)
    assert "dummy.row-count-is-known" in refused.stderr
    assert session in refused.stderr
    assert "Wards" in refused.stderr
    machines.answer(invitation, *ACCEPT)
    machines.send()
    for _ in range(10):
        machines.fetch(session, "r1c1")
        said = machines.answer()
        if "labels" in said.stdout:
            break
        machines.send()
    assert len(read(online.folder / "labels.csv")) == 12


def test_wrong_files_are_refused_with_a_sentence(
    machines: Machines, online: Terminal
) -> None:
    session, invitation = opened(online)
    machines.fetch(invitation)
    first = machines.task.read_bytes()
    machines.answer(invitation, *ACCEPT)
    joined = machines.answered.read_bytes()
    machines.send()
    assert "sent already" in machines.send(expect=3).stderr
    assert "answered already" in machines.answer(expect=3).stderr
    machines.fetch(session, "r1c1")
    second = machines.task.read_bytes()
    machines.task.write_bytes(first)
    assert "answered already" in machines.answer(expect=3).stderr
    machines.task.write_bytes(second[:-1] + bytes([second[-1] ^ 1]))
    assert "copy it again" in machines.answer(expect=5).stderr
    machines.task.write_bytes(joined)
    assert "holds an answer" in machines.answer(expect=5).stderr
    machines.task.write_bytes(b"nonsense")
    assert "no file of" in machines.answer(expect=5).stderr
    other, elsewhere = opened(online)
    machines.fetch(elsewhere)
    assert f"for {other}" in machines.answer(invitation, expect=3).stderr
    machines.task.write_bytes(second)
    machines.answer()
    machines.fetch(session, "r1c1")
    assert "the last that was fetched" in machines.send(expect=3).stderr


def test_an_answer_that_another_institution_signed_is_not_sent(
    machines: Machines, online: Terminal, analyst: Analyst
) -> None:
    session, invitation = opened(online)
    machines.fetch(invitation)
    machines.answer(invitation, *ACCEPT)
    machines.send()
    machines.fetch(session, "r1c1")
    machines.answer()
    honest = AnswerFile.read(machines.answered.read_bytes())
    forger = Institution("", bytes(32))
    machines.answered.write_bytes(
        replace(honest, body=b"forged").to_signed_bytes(forger)
    )
    assert "Another institution" in machines.send(expect=3).stderr
    connected = Courier(online.folder / "connected", session, "r1c1")
    elsewhere = replace(honest, path=f"/v1/sessions/{session}/cancel", method="POST")
    with analyst.connect() as there, pytest.raises(CoterieError):
        connected.send(AnswerFile.read(elsewhere.to_signed_bytes(forger)), there)
    own = honest.to_signed_bytes(forger)
    with pytest.raises((KeyNotAuthentic, InvalidData)):
        AnswerFile.read(own[:-3] + b"xyz")


def test_an_answer_cannot_ask_for_anything_else(tmp_path: Path) -> None:
    own = Institution("", bytes(32))
    fetched = Courier(tmp_path, "s", "a")
    path = tmp_path / "parties" / "s" / "a" / "carrier.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"url": "http://localhost", "code": "c", "token": "t", "number": 1}'
    )
    answer = AnswerFile(
        session="s",
        slot="a",
        number=1,
        method="POST",
        path="/v1/sessions/s/cancel",
        media_type="application/json",
        body=b"{}",
    )
    with pytest.raises(GuardRefused, match="does not send"):
        fetched.send(AnswerFile.read(answer.to_signed_bytes(own)), None)  # type: ignore[arg-type]  # never reached


WELL = {"kind": "task", "session": "s", "slot": "a", "number": 1, "has_joined": False}
PREVIEW = ["POST", "/v1/join/preview", 200, "application/json"]
ODD_TASKS: dict[str, dict[str, Any]] = {
    "a session that is a path": {"session": "../../elsewhere"},
    "an absolute session": {"session": "/tmp/elsewhere"},
    "a session that is a number": {"session": 5},
    "a session with NUL": {"session": "a\0b"},
    "a slot that is a path": {"slot": "a/../../b"},
    "a slot that is a list": {"slot": ["a"]},
    "a number that is a text": {"number": "1"},
    "no number": {"number": None},
    "a huge number": {"number": 2**53 - 1},
    "a field more": {"more": 1},
    "a path upwards": {"said": [["GET", "/v1/../internal", 200, ""]]},
    "a status that is a text": {"said": [["GET", "/v1/join", "200", ""]]},
    "a status that is none": {"said": [["GET", "/v1/join", 999, ""]]},
    "a media type with CR LF": {"said": [["GET", "/v1/join", 200, "a\r\nX: y"]]},
    "a media type with other signs": {"said": [["GET", "/v1/join", 200, "€"]]},
    "numbers for words": {"said": [[1, 2, 3, 4]]},
    "a body too few": {"said": [PREVIEW, PREVIEW]},
}


@pytest.mark.threat(135)
@pytest.mark.parametrize("odd", ODD_TASKS.values(), ids=ODD_TASKS)
def test_a_task_of_another_form_is_refused_with_a_sentence(odd: dict[str, Any]) -> None:
    """Names in it become paths on the machine without network."""
    assert (
        TaskFile.read(files._encode_file(WELL | {"said": [PREVIEW]}, [b"{}"])).number
        == 1
    )
    with pytest.raises(InvalidData, match="another release"):
        TaskFile.read(files._encode_file(WELL | {"said": [PREVIEW]} | odd, [b"{}"]))


@pytest.mark.threat(135)
@pytest.mark.parametrize("content", [b"", b"x", b"coterie-step-1\n", b"\xff" * 80])
def test_what_is_no_task_at_all_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(InvalidData):
        TaskFile.read(content)


@pytest.mark.threat(135)
@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/s/rounds/../../../../internal",
        "/v1/sessions/s/rounds/@x",
        "//other.example/v1/sessions/s/rounds/1/attempts/1/contribution",
        "/v1/sessions/s/rounds/1/attempts/1/contribution?x=y",
        "/v1/sessions/s/rounds/1/attempts/1/contribution\r\nX: y",
        "/v1/sessions/t/rounds/1/attempts/1/contribution",
        "/v1/sessions/s/rounds/1/attempts/1",
    ],
)
def test_an_answer_leads_nowhere_but_to_its_round(tmp_path: Path, path: str) -> None:
    place = tmp_path / "parties" / "s" / "a" / "carrier.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"url": "http://localhost", "code": "c", "number": 1}')
    answer = AnswerFile(
        session="s",
        slot="a",
        number=1,
        method="PUT",
        path=path,
        media_type="",
        body=b"",
    )
    with pytest.raises((GuardRefused, InvalidData)):
        Courier(tmp_path, "s", "a").send(
            AnswerFile.read(answer.to_signed_bytes(Institution("", bytes(32)))),
            None,  # type: ignore[arg-type]  # never reached
        )


@pytest.mark.threat(135)
def test_an_answer_names_no_folder_outside_of_the_home() -> None:
    answer = AnswerFile(
        session="../../elsewhere",
        slot="a",
        number=1,
        method="PUT",
        path="/v1/join",
        media_type="",
        body=b"",
    )
    with pytest.raises(InvalidData, match="another release"):
        AnswerFile.read(answer.to_signed_bytes(Institution("", bytes(32))))
