"""Names of clusters go sealed to those who read the profile, and to nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from support.analyst_process import House
from support.browsing import texts
from support.desks import desk_at
from support.in_process import HandClock, in_process

from clustering_protocols.common.errors import (
    EnvelopeRefused,
    InvalidParameters,
    KeyNotAuthentic,
    Malformed,
    NotReady,
)
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout
from party_sdk.application.exports import name_clusters, receive_names, send_names
from party_sdk.application.home import Home
from party_sdk.cli import main
from party_sdk.party import cluster_names
from party_sdk.party.cluster_names import (
    LetterWriter,
    profile_readers,
    read_letter,
    write_letters,
)
from party_sdk.party.folder import PartyFolder
from party_sdk.reports.run_reports import run_report
from party_sdk.tables import open_table

LAYOUT = Layout.lattice(3, 2)
A, B, C = "r1c1", "r2c1", "r3c1"
OTHER = "r1c2"
pytestmark = pytest.mark.usefixtures("house")


def tables() -> list[Any]:
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [45, 30, 15]))
    X = np.array([[9.0, -9.0], [0.0, 9.0], [-9.0, 0.0]])[truth]
    X = np.hstack([X, X]) + rng.normal(size=(90, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "id", [f"p{n}" for n in range(90)])
    return [
        open_table(
            frame[30 * slot.row : 30 * slot.row + 30][
                ["id", *(("a", "b"), ("c", "d"))[slot.column]]
            ],
            id_column="id",
        )
        for slot in LAYOUT.slots
    ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Homes of six parties of one session, in two column groups, with their labels."""
    place = tmp_path_factory.mktemp("names")
    with in_process(place / "analyst", driven=True) as api:
        house = House(api, place, fixed=False)
        session = house.open(
            "s",
            DataCollaboration(n_clusters=3),
            LAYOUT,
            dictionary=[numbers(("a", "b"), -60, 60), numbers(("c", "d"), -60, 60)],
            release=Release(profiles="members"),
        )
        house.run(session, tables())
        yield house


def at(house: House, slot: str) -> tuple[Home, PartyFolder]:
    home = house.home_of(slot)
    return Home(path=home), PartyFolder(home, "s", slot)


def sender_of(house: House, slot: str) -> tuple[bytes, LetterWriter]:
    _, folder = at(house, slot)
    agreement = folder.load_agreement()
    assert agreement is not None
    keys = folder.cluster_names.keys()
    return agreement, LetterWriter(slot, house.last[slot].identity, keys)


def letter(
    house: House, names: dict[int, str], number: int = 1, sender: str = A, to: str = B
) -> bytes:
    return write_letters(names, number, *sender_of(house, sender))[to]


def read(house: House, text: bytes, slot: str = B) -> Any:
    agreement, sender = sender_of(house, slot)
    return read_letter(text, agreement, sender.keys, slot)


def test_names_reach_the_reports_of_those_who_read_the_profile(
    house: House, tmp_path: Path
) -> None:
    here, folder = at(house, A)
    name_clusters(here, folder, {0: "SIDD", 2: "Old <b>&"})
    written = send_names(here, folder, tmp_path / "letters")
    assert [path.name for path in written] == [
        f"s-names-{A}-to-{B}.letter",
        f"s-names-{A}-to-{C}.letter",
    ]
    assert all("SIDD" not in path.read_text() for path in written)
    there, at_b = at(house, B)
    receive_names(there, at_b, [written[0].read_bytes()])
    assert at_b.cluster_names.read_received() == {A: ("SIDD", "", "Old <b>&")}
    assert at_b.cluster_names.read() == (), "own names are the party's own"
    report = run_report(house.last[B], there.path)
    (given,) = report.given
    assert (given.slot, given.names) == (A, ("SIDD", "", "Old <b>&"))
    page = tmp_path / "report.html"
    words = ["party", "report", "s", "--html", str(page)]
    done = CliRunner().invoke(main, words, env={"COTERIE_HOME": str(there.path)})
    assert done.exit_code == 0, done.output
    assert "cluster 2: Old &lt;b&gt;&amp;" in page.read_text()
    with pytest.raises(EnvelopeRefused, match="to 'r3c1'"):
        receive_names(there, at_b, [written[1].read_bytes()])


def test_the_command_writes_and_reads_letters(house: House, tmp_path: Path) -> None:
    def party(slot: str, *words: object, code: int = 0) -> dict[str, Any]:
        said = ["party", "name", "s", *map(str, words), "--json"]
        env = {"COTERIE_HOME": str(house.home_of(slot))}
        done = CliRunner().invoke(main, said, env=env)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout) if not code else {}

    party(C, "--letters", tmp_path, code=7)
    party(C, "--name", "1=Young", "--letters", tmp_path)
    path = tmp_path / f"s-names-{C}-to-{A}.letter"
    assert path.stat().st_mode & 0o077 == 0
    assert party(A, "--read", path)["of_others"][C] == {"0": "", "1": "Young"}
    path.write_bytes(path.read_bytes()[:-9])
    party(A, "--read", path, code=7)


def test_the_desk_writes_and_reads_letters(house: House, tmp_path: Path) -> None:
    with ExitStack() as opened:
        desks = {
            slot: opened.enter_context(
                desk_at(house.home_of(slot), tmp_path, HandClock())
            )
            for slot in (A, B, OTHER)
        }
        for slot, desk in desks.items():
            desk.open()
            shown = texts(desk.get(f"/parties/s/{slot}/report"))
            assert (f"Letter to {A}" in shown) == (slot == B)
        here, there = (f"/parties/s/{slot}" for slot in (A, B))
        desks[A].post(f"{here}/names", {"name-0": "SIDD", "name-1": ""})
        assert f"Letter to {B}" in texts(desks[A].get(f"{here}/report"))
        nobody = desks[A].post(f"{here}/letters/own", {"reader": OTHER})
        assert "No such party reads the profile" in texts(nobody)
        sealed = desks[A].post(f"{here}/letters/own", {"reader": B})
        disposition = sealed.headers["content-disposition"]
        assert f"s-names-{A}-to-{B}.letter" in disposition
        read = desks[B].post(f"{there}/letters", {"letter": sealed.text})
        assert "SIDD" in texts(desks[B].follow(read))
        (tmp_path / "cut.letter").write_bytes(sealed.content[:-9])
        refused = desks[B].post(f"{there}/letters", {"file": "cut.letter"})
        assert texts(refused).count("SIDD") == texts(desks[B].follow(read)).count(
            "SIDD"
        )


@pytest.mark.parametrize(
    ("release", "slot", "readers"),
    [
        (None, A, ()),
        ("members", A, (B, C)),
        ("members", OTHER, ("r2c2", "r3c2")),
        ("everybody", A, (OTHER, B, "r2c2", C, "r3c2")),
    ],
)
def test_readers_are_those_of_the_profile(
    house: House, release: Any, slot: str, readers: tuple[str, ...]
) -> None:
    told = None if release is None else Release(profiles=release)
    terms = house.last[A].terms.model_copy(update={"release": told})
    assert set(profile_readers(terms, slot)) == set(readers)
    few = terms.model_copy(update={"layout": Layout.lattice(2)})
    assert profile_readers(few, A) == ()


def change(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda text: json.dumps({**json.loads(text), **fields}).encode()


LIES: dict[str, tuple[Callable[[bytes], bytes], type[Exception]]] = {
    "another number": (change(number=2), EnvelopeRefused),
    "another member": (change(sender=C), EnvelopeRefused),
    "a party of other columns": (change(sender=OTHER), EnvelopeRefused),
    "no party": (change(sender="nobody"), EnvelopeRefused),
    "the reader": (change(sender=B), EnvelopeRefused),
    "to another": (change(receiver=C), EnvelopeRefused),
    "another session": (change(session="t"), EnvelopeRefused),
    "nothing inside": (change(sealed=""), EnvelopeRefused),
    "no base64": (change(sealed="###"), EnvelopeRefused),
    "a field more": (change(more=1), Malformed),
    "number 0": (change(number=0), Malformed),
    "another version": (change(coterie="cluster-names/2"), Malformed),
    "cut off": (lambda text: text[:-2], Malformed),
    "nested": (lambda _: b"[" * 100_000, Malformed),
}


@pytest.mark.threat(178)
@pytest.mark.parametrize("what", LIES)
def test_a_letter_that_was_changed_or_swapped_does_not_open(
    house: House, what: str
) -> None:
    lie, refused = LIES[what]
    honest = letter(house, {0: "SIDD"})
    assert read(house, honest).names == {0: "SIDD"}
    with pytest.raises(refused):
        read(house, lie(honest))


@pytest.mark.threat(178)
def test_a_member_cannot_write_in_the_name_of_another(house: House) -> None:
    """Its own key signs, and the letter says that it is another's."""
    agreement, own = sender_of(house, C)
    forged = write_letters({0: "SIDD"}, 1, agreement, own._replace(slot=A))[B]
    with pytest.raises(EnvelopeRefused):
        read(house, forged)
    _, known = sender_of(house, A)
    forged = write_letters(
        {0: "SIDD"}, 1, agreement, known._replace(institution=own.institution)
    )[B]
    with pytest.raises(KeyNotAuthentic):
        read(house, forged)
    assert B not in write_letters({0: "SIDD"}, 1, *sender_of(house, OTHER))


@pytest.mark.threat(178)
def test_no_key_of_the_session_stays(house: House) -> None:
    """What both sides keep is one key, and that of no other pair."""
    _, here = sender_of(house, A)
    _, there = sender_of(house, B)
    assert here.keys[B] == there.keys[A]
    assert len({*here.keys.values(), *there.keys.values()}) == 3
    assert at(house, A)[1].load_identity().entropy == ""


@pytest.mark.threat(178)
def test_earlier_letters_are_not_read_again(house: House) -> None:
    _, folder = at(house, B)
    names = folder.cluster_names
    second = read(house, letter(house, {0: "new"}, 902, sender=C))
    first = read(house, letter(house, {0: "old"}, 901, sender=C))
    names.receive(second, 3)
    with pytest.raises(EnvelopeRefused, match="not read again"):
        names.receive(first, 3)
    names.receive(second, 3)
    assert names.read_received()[C] == ("new",)


@pytest.mark.threat(178)
@pytest.mark.parametrize(
    "name",
    ["x" * 41, "a\tb", "a\nb", "a\x1b[31m", "\u202eDDIS", "a\u2066b", "a\u200bb"],
)
def test_names_that_are_no_line_are_refused_from_members_too(
    house: House, name: str
) -> None:
    _, folder = at(house, B)
    before = folder.cluster_names.read_received()
    said = read(house, letter(house, {0: name}, 999))
    with pytest.raises(InvalidParameters, match="printable"):
        folder.cluster_names.receive(said, 3)
    with pytest.raises(InvalidParameters, match="no cluster 3"):
        folder.cluster_names.receive(said._replace(names={3: "x"}), 3)
    assert folder.cluster_names.read_received() == before


@pytest.mark.threat(178)
def test_a_file_that_is_too_large_is_not_read(house: House, tmp_path: Path) -> None:
    path = tmp_path / "large.letter"
    with path.open("wb") as file:
        file.truncate(cluster_names.LARGEST + 1)
    words = ["party", "name", "s", "--read", str(path)]
    env = {"COTERIE_HOME": str(house.home_of(B))}
    done = CliRunner().invoke(main, words, env=env)
    assert "too large for a letter" in done.output


def test_without_names_there_is_no_letter(house: House, tmp_path: Path) -> None:
    here, folder = at(house, OTHER)
    with pytest.raises(NotReady, match="No cluster has a name"):
        send_names(here, folder, tmp_path)
