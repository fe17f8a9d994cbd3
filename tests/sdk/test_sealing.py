"""A sealed home: what a thief of the disk reads, and what its owner still can."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.analyst_process import House

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused, InvalidParameters, NotReady
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from coterie import Party, Policy
from party_sdk.cli import main
from party_sdk.home import encryption
from party_sdk.home.encryption import SecretFiles
from party_sdk.home.files import private_folder
from party_sdk.home.identities import OwnIdentity
from party_sdk.party.folder import PartyFolder
from party_sdk.party.party_index import kept_parties
from party_sdk.results.trained_rows import measure_prepared, measure_variables

if TYPE_CHECKING:
    from support.in_process import Api

StartApi = Callable[..., "AbstractContextManager[Api]"]

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(1), seed=1)
A = "r1c1"
POLICY = Policy(
    accepted_risks=frozenset({"dummy.row-count-is-known", "house.open-slot"}),
    least_known=0,
)
WORDS = "correct horse battery staple"
SLOWLY_DERIVED = encryption._derive_from_passphrase
IN_CLEAR = {
    "lock",
    "identity.lock",
    "sent.log",
    "seal.json",
    "known.json",
    "analysts.json",
}


@pytest.fixture(autouse=True)
def passphrase(
    monkeypatch: pytest.MonkeyPatch, derive_quickly: Callable[[], None]
) -> None:
    monkeypatch.setenv("COTERIE_PASSPHRASE", WORDS)
    derive_quickly()
    encryption._key.cache_clear()
    encryption._ask_passphrase.cache_clear()
    encryption._read_keyring.cache_clear()


def session(api: Api, home: Path, finish: bool = True) -> Path:  # noqa: FBT001, FBT002
    """Open a session and take part in it from one home; return the party's folder."""
    house = House(api, home, fixed=False, shared=True)
    with house.parties(house.open("w", Dummy(), PARTS.layout))[A] as party:
        if finish:
            party.run(PARTS.data[A])
        return party.folder.path


def test_a_sealed_home_shows_a_thief_no_secret_row_or_label(
    start_api: StartApi, home: Path
) -> None:
    files = SecretFiles(home)
    files.seal(WORDS)
    with start_api(driven=True) as api:
        folder = session(api, home)
        token = PartyFolder(home, "w", A).load_identity().token
    assert token is not None
    seed = OwnIdentity(home).load().key_bytes
    for path in home.rglob("*"):
        if path.is_dir() or path.name in IN_CLEAR:
            continue
        assert path.read_bytes().startswith(encryption._MAGIC), path
    everything = b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())
    for secret in (token, seed.hex(), "coterie-2/", '"terms"'):
        assert secret.encode() not in everything
    assert (folder / "result.arrays").exists()


@pytest.mark.parametrize("when", ["before", "in the middle", "after"])
def test_sealing_a_home_at_any_time_keeps_its_session(
    start_api: StartApi, home: Path, when: str
) -> None:
    files = SecretFiles(home)
    if when == "before":
        files.seal(WORDS)
    with start_api(driven=True) as api:
        folder = session(api, home, finish=when != "in the middle")
        if when != "before":
            assert b"coterie-2/" in (folder / "identity.json").read_bytes()
            assert files.seal(WORDS) == len(list(files._secret(folder))) + 2
        kept = PartyFolder(home, "w", A).load_identity()
        again = Party.join(
            kept.invitation, policy=POLICY, home=home, analyst=api.connect()
        )
        with again as party:
            labels = party.run(PARTS.data[A]).labels
    assert len(labels) == 40
    assert files.open() > 2
    assert not files.is_sealed
    assert PartyFolder(home, "w", A).load_result() is not None
    assert json.loads((folder / "identity.json").read_text())["entropy"] == ""


def test_another_passphrase_opens_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SecretFiles(home).seal(WORDS)
    OwnIdentity(home).make("North")
    monkeypatch.setenv("COTERIE_PASSPHRASE", "wrong")
    with pytest.raises(GuardRefused, match="does not open"):
        OwnIdentity(home).load()
    with pytest.raises(GuardRefused, match="does not open"):
        SecretFiles(home).seal("wrong")


def test_a_sealed_file_counts_at_its_place_alone(home: Path) -> None:
    files = SecretFiles(home)
    files.seal(WORDS)
    first, second = home / "sessions" / "a.json", home / "sessions" / "b.json"
    first.parent.mkdir()
    files.write(first, b"first")
    second.write_bytes(first.read_bytes())
    with pytest.raises(GuardRefused, match="changed, or moved"):
        files.read(second)
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    with pytest.raises(GuardRefused, match="changed, or moved"):
        files.read(first)


def test_sealing_that_was_interrupted_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnIdentity(home).make("North")
    files = SecretFiles(home)
    with monkeypatch.context() as context:
        context.setattr(SecretFiles, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            files.seal(WORDS)
    assert OwnIdentity(home).load().key == own.key, "what is not sealed yet is read"
    assert files.seal(WORDS) == 1
    assert OwnIdentity(home).load().key == own.key


def test_opening_that_was_interrupted_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnIdentity(home).make("North")
    files = SecretFiles(home)
    files.seal(WORDS)
    with monkeypatch.context() as context:
        context.setattr(Path, "unlink", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            files.open()
    assert OwnIdentity(home).load().key == own.key, "it lies in clear already"
    assert files.open() == 1
    assert OwnIdentity(home).load().key == own.key


@pytest.mark.threat(134)
@pytest.mark.parametrize("words", [WORDS, "another passphrase"])
@pytest.mark.parametrize("pretends", [False, True])
def test_a_sealed_home_believes_no_file_in_clear(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    *,
    pretends: bool,
) -> None:
    """Who writes to the disk cannot become the institution, with no passphrase."""
    OwnIdentity(home).make("North")
    SecretFiles(home).seal(WORDS)
    OwnIdentity(tmp_path / "other").make("Mallory")
    planted = (tmp_path / "other" / "identity.json").read_bytes()
    (home / "identity.json").write_bytes(planted)
    if pretends:  # that sealing is still under way
        seal = json.loads((home / "seal.json").read_bytes())
        (home / "seal.json").write_text(json.dumps(seal | {"is_complete": False}))
    monkeypatch.setenv("COTERIE_PASSPHRASE", words)
    with pytest.raises(GuardRefused):
        OwnIdentity(home).load()
    with pytest.raises(GuardRefused):
        SecretFiles(home).seal(words)
    assert (home / "identity.json").read_bytes() == planted, "it was not taken in"


def test_nothing_is_sealed_under_the_feet_of_a_party_that_runs(home: Path) -> None:
    folder = PartyFolder(home, "w", A)
    with folder.lock(), pytest.raises(NotReady, match="at work"):
        SecretFiles(home).seal(WORDS)


def test_a_sealed_home_without_a_passphrase_shows_the_remedy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SecretFiles(home).seal(WORDS)
    OwnIdentity(home).make("North")
    monkeypatch.delenv("COTERIE_PASSPHRASE")
    with pytest.raises(NotReady, match="COTERIE_PASSPHRASE_FILE"):
        OwnIdentity(home).load()


def test_a_file_of_a_passphrase_that_is_not_there_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    SecretFiles(home).seal(WORDS)
    monkeypatch.setenv("COTERIE_PASSPHRASE_FILE", str(tmp_path / "none"))
    with pytest.raises(InvalidParameters, match="COTERIE_PASSPHRASE_FILE"):
        OwnIdentity(home).make("North")


def test_the_list_of_a_sealed_home_says_that_it_is_sealed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SecretFiles(home).seal(WORDS)
    folder = PartyFolder(home, "w", A)
    monkeypatch.setattr(PartyFolder, "exists", True)
    private_folder(folder.path)
    monkeypatch.delenv("COTERIE_PASSPHRASE")
    [party] = kept_parties(home)
    assert party.state == "sealed"
    assert "COTERIE_PASSPHRASE_FILE" in party.following


# The command


def coterie(home: Path, *words: str, given: str = "") -> Result:
    environment = {"COTERIE_HOME": str(home)}
    return CliRunner().invoke(main, words, env=environment, input=given)


def test_the_command_seals_and_opens(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "_derive_from_passphrase", SLOWLY_DERIVED)
    assert coterie(home, "identity", "new", "North").exit_code == 0
    monkeypatch.delenv("COTERIE_PASSPHRASE")
    sealed = coterie(home, "seal", given=f"{WORDS}\n{WORDS}\n")
    assert sealed.stdout.endswith("1 files of " + str(home) + " are sealed.\n")
    words = tmp_path / "words"
    words.write_text(f"{WORDS}\n")
    monkeypatch.setenv("COTERIE_PASSPHRASE_FILE", str(words))
    assert "North" in coterie(home, "identity", "show").stdout
    assert coterie(home, "seal").exit_code == 0, "again: what came since is sealed"
    assert coterie(home, "seal", "--remove").exit_code == 0
    assert coterie(home, "seal", "--remove").exit_code == 7
    assert coterie(home, "seal", "--remove", "--keyring").exit_code == 2


def test_the_system_keyring_can_keep_the_passphrase(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[str, str], str] = {}
    ring = ModuleType("keyring")
    ring.set_password = lambda s, u, p: kept.update({(s, u): p})  # type: ignore[attr-defined]  # a module of its own making
    ring.get_password = lambda s, u: kept.get((s, u))  # type: ignore[attr-defined]  # a module of its own making
    ring.errors = SimpleNamespace(KeyringError=OSError)  # type: ignore[attr-defined]  # a module of its own making
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", ring.errors)
    ring.__spec__ = ModuleSpec("keyring", None)
    monkeypatch.delenv("COTERIE_PASSPHRASE")
    coterie(home, "identity", "new", "North")
    assert coterie(home, "seal", "--keyring").exit_code == 0
    assert b"North" not in (home / "identity.json").read_bytes()
    assert "North" in coterie(home, "identity", "show").stdout
    assert [len(p) > 40 for p in kept.values()] == [True]
    monkeypatch.setattr(encryption, "find_spec", lambda _: None)
    encryption._read_keyring.cache_clear()
    assert coterie(home, "identity", "show").exit_code == 7


def test_moments_of_own_rows_are_sealed(tmp_path: Path) -> None:
    SecretFiles(tmp_path).seal(WORDS)
    folder = PartyFolder(tmp_path, "wards", A)
    private_folder(folder.path)
    rows = PARTS.data[A]
    folder.save_moments(measure_prepared(rows), measure_variables(rows))
    files = sorted(folder.path.iterdir())
    assert [path.name for path in files] == ["moments.arrays", "variables.arrays"]
    for path in files:
        assert b"moments" not in path.read_bytes()
    kept = PartyFolder(tmp_path, "wards", A).load_variables()
    assert kept is not None
    assert kept.mean.tolist() == pytest.approx(matrix(rows).mean(axis=0).tolist())
