"""What a party and a coordinator keep: private, whole, and told apart from others'."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import httpx
import numpy as np
import pytest

from clustering_protocols.common.errors import (
    CoterieError,
    Equivocation,
    InvalidParameters,
    NotReady,
    StorageFull,
)
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.shared_stages.row_selection import AdmittedRows
from clustering_protocols.terms.roster_entries import sign_terms
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.home.files import default_home, write_private
from party_sdk.party import durable_state
from party_sdk.party.durable_state import AnsweredRound, DurableState
from party_sdk.party.folder import Identity, PartyFolder

CONTRIBUTION = b"what was sent"
ANSWERED = AnsweredRound(
    round=3,
    attempt=2,
    task_digest="ab" * 32,
    contribution_digest=sha256(CONTRIBUTION).hexdigest(),
    before=Memory({"own-word": b"one", "position": b""}),
    after=Memory({"own-word": b"one", "position": b"3", "heard-word": bytes(9)}),
)
STANDING = DurableState(
    turn=1,
    answered=ANSWERED,
    journal=Journal(round=3, attempt=2),
    contribution=CONTRIBUTION,
    lines=("one line", "another"),
)
IDENTITY = Identity(
    invitation="https://a#coterie-2/s/a/code/secret",
    entropy="e" * 64,
    terms="{}",
    token="pt_token",
)


@pytest.fixture
def folder(tmp_path: Path) -> PartyFolder:
    return PartyFolder(tmp_path / "home", "s", "a")


ARRIVED = AdmittedRows(rows=np.array([2, 0]), n_rows=3)


def fill(folder: PartyFolder) -> None:
    folder.save_identity(IDENTITY)
    folder.save_agreement(b"agreement")
    folder.save_arrived(ARRIVED)
    folder.save_standing(STANDING)
    folder.save_result(b"result")


def test_the_arrived_order_is_kept_until_it_is_removed(
    folder: PartyFolder,
) -> None:
    fill(folder)
    kept = folder.load_arrived()
    assert kept is not None
    assert (kept.rows.tolist(), kept.n_rows) == ([2, 0], 3)
    folder.save_arrived(None)
    assert folder.load_arrived() is None
    folder.save_arrived(None)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def open_umask() -> Iterator[None]:
    """An operator whose files are open to everybody by default."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_only_its_owner_reads_what_a_party_keeps(folder: PartyFolder) -> None:
    folder.path.mkdir(parents=True, mode=0o777)
    fill(folder)
    with folder.lock():
        pass
    files = [path for path in folder.path.iterdir() if path.name != "lock"]
    assert len(files) == 5
    assert {mode(path) for path in files} == {0o600}
    assert mode(folder.path) == 0o700


@pytest.mark.usefixtures("open_umask")
def test_only_its_owner_reads_what_a_coordinator_keeps(tmp_path: Path) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/identity":
            return httpx.Response(200, json={"key": "0" * 64})
        return httpx.Response(500)

    refusing = httpx.MockTransport(refuse)
    http = httpx.Client(base_url="http://127.0.0.1", transport=refusing)
    analyst = connect("http://127.0.0.1", patience=0, http=http)
    with (
        Coordinator(
            "http://127.0.0.1", "key", home=tmp_path, analyst=analyst
        ) as coordinator,
        pytest.raises(CoterieError),
    ):
        coordinator.create_session("s", Dummy(), Layout.lattice(1))
    [kept] = (tmp_path / "sessions").iterdir()
    for private in (kept, tmp_path / "identity.json", tmp_path / "analysts.json"):
        assert (mode(private), mode(private.parent)) == (0o600, 0o700)


def test_a_crash_while_writing_leaves_the_old_content_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    write_private(path, b"old")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_private(path, b"new and longer")
    assert path.read_bytes() == b"old"
    write_private(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert [found.name for found in tmp_path.iterdir()] == ["kept"]


def test_what_is_kept_is_read_back(folder: PartyFolder) -> None:
    fill(folder)
    again = PartyFolder(folder.path.parents[2], "s", "a")
    assert again.exists
    assert again.load_identity() == IDENTITY
    assert again.load_agreement() == b"agreement"
    assert again.load_result() == b"result"
    assert facts(again.load_standing()) == facts(STANDING)
    assert again.load_standing().sent_contribution == CONTRIBUTION


def facts(standing: DurableState) -> tuple[object, ...]:
    answered = standing.answered
    return (
        standing.turn,
        standing.lines,
        standing.contribution,
        standing.journal.encode(),
        answered.place,
        answered.task_digest,
        answered.contribution_digest,
        answered.before.entries,
        answered.after.entries,
    )


def test_before_the_first_round_nothing_is_known(folder: PartyFolder) -> None:
    assert not folder.exists
    assert facts(folder.load_standing()) == facts(DurableState())
    assert folder.load_agreement() is None
    assert folder.load_result() is None
    with pytest.raises(NotReady, match="join first"):
        folder.load_identity()


def test_sessions_and_slots_have_folders_of_their_own(tmp_path: Path) -> None:
    places = {
        PartyFolder(tmp_path, session, slot).path
        for session in ("s", "t")
        for slot in ("a", "b")
    }
    assert len(places) == 4


def test_forgetting_everything_leaves_nothing(folder: PartyFolder) -> None:
    fill(folder)
    folder.forget(everything=True)
    assert not folder.exists
    assert not folder.path.exists()


def test_log_agreement_and_report_outlive_the_rest(folder: PartyFolder) -> None:
    fill(folder)
    folder.ledger.note_joining("a" * 64)
    log = (folder.path / "sent.log").read_bytes()
    agreement = folder.load_agreement()
    assert folder.forgotten() is None
    folder.forget(b"{}")
    assert not folder.exists
    left = folder.forgotten()
    assert left is not None
    names = {path.name for path in folder.path.rglob("*") if path.is_file()}
    assert names == {"sent.log", "agreement.json", "report.json"}
    assert (left.path / "sent.log").read_bytes() == log
    assert (left.load_agreement(), left.load_report()) == (agreement, b"{}")
    assert (left.session, left.slot) == (folder.session, folder.slot)


def test_a_party_that_joins_anew_begins_a_log_of_its_own(tmp_path: Path) -> None:
    for digest in ("a" * 64, "b" * 64):
        folder = PartyFolder(tmp_path, "s", "a")
        fill(folder)
        folder.ledger.note_joining(digest)
        assert [entry["digest"] for entry in folder.ledger.read()] == [digest]
        folder.forget()
    left = PartyFolder(tmp_path, "s", "a").forgotten()
    assert left is not None
    assert [entry["digest"] for entry in left.ledger.read()] == ["b" * 64]


def test_a_contribution_that_was_changed_on_disk_is_not_sent(
    folder: PartyFolder,
) -> None:
    folder.path.mkdir(parents=True)
    folder.save_standing(replace(STANDING, contribution=CONTRIBUTION + b"!"))
    with pytest.raises(NotReady, match="was changed"):
        _ = folder.load_standing().sent_contribution


def written(folder: PartyFolder, turns: int) -> list[Path]:
    """Let a party's place be written so often; return its files, the newest first."""
    folder.path.mkdir(parents=True, exist_ok=True)
    for turn in range(1, turns + 1):
        lines = (f"line {turn}",)
        folder.save_standing(replace(STANDING, turn=turn, lines=lines))
    return sorted(
        folder.path.glob("answered.*.arrays"),
        key=lambda path: path.stat().st_mtime_ns,
        reverse=True,
    )


@pytest.mark.parametrize("turns", [2, 3])
def test_a_crash_within_a_turn_leaves_the_turn_before(
    folder: PartyFolder, turns: int
) -> None:
    newest, older = written(folder, turns)
    whole = newest.read_bytes()
    assert folder.load_standing().lines == (f"line {turns}",)
    for n_left in (0, 3, 4, len(whole) // 2, len(whole) - 1):
        newest.write_bytes(whole[:n_left])
        assert folder.load_standing().lines == (f"line {turns - 1}",)
        newest.write_bytes(whole[:n_left] + bytes(len(whole) - n_left))
        assert folder.load_standing().lines == (f"line {turns - 1}",)
    older.write_bytes(b"")
    with pytest.raises(NotReady, match="was changed"):
        folder.load_standing()


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")], ids=["crash", "full"]
)
def test_a_crash_within_the_first_turn_leaves_the_beginning(
    folder: PartyFolder,
    monkeypatch: pytest.MonkeyPatch,
    failure: type[BaseException] | BaseException,
) -> None:
    folder.path.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=failure))
        with pytest.raises((KeyboardInterrupt, StorageFull)):
            folder.save_standing(replace(STANDING, turn=1))
    assert facts(folder.load_standing()) == facts(DurableState())
    folder.save_standing(replace(STANDING, turn=1))
    assert facts(folder.load_standing()) == facts(STANDING)


def test_a_turn_is_one_sync(
    folder: PartyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, 2)
    synced = Mock(side_effect=os.fsync)
    monkeypatch.setattr(os, "fsync", synced)
    folder.save_standing(replace(STANDING, turn=3))
    assert synced.call_count == 1


def test_a_memory_of_another_release_is_refused(
    folder: PartyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(durable_state, "_VERSION", 99)
        fill(folder)
    with pytest.raises(NotReady, match="another release"):
        folder.load_standing()


@pytest.mark.parametrize("shown", [repr, str, "{}".format])
def test_an_identity_shows_no_secret(shown: object) -> None:
    text = shown(IDENTITY)  # type: ignore[operator]  # parametrised by repr and str
    for secret in (IDENTITY.entropy, IDENTITY.token, "secret"):
        assert str(secret) not in text


# Which memory a round starts from


@pytest.mark.parametrize(
    ("round_", "attempt", "expected"),
    [(4, 1, "after"), (9, 1, "after"), (3, 3, "before"), (3, 5, "before")],
)
def test_a_later_round_or_attempt_starts_from_its_own_memory(
    round_: int, attempt: int, expected: str
) -> None:
    base = ANSWERED.base(round_, attempt)
    assert base.entries == getattr(ANSWERED, expected).entries


@pytest.mark.parametrize(
    ("round_", "attempt"), [(3, 2), (3, 1), (2, 1), (2, 9), (1, 1)]
)
def test_an_earlier_round_or_attempt_is_equivocation(round_: int, attempt: int) -> None:
    with pytest.raises(Equivocation, match="after round 3, attempt 2"):
        ANSWERED.base(round_, attempt)


# One process at a time

HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1], "wb")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_process_of_the_same_party_is_refused(folder: PartyFolder) -> None:
    fill(folder)
    with folder.lock():
        pass
    command = [sys.executable, "-c", HOLD, str(folder.path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(NotReady, match="Another process"), folder.lock():
            pytest.fail("both run")
        other.send_signal(signal.SIGKILL)
        other.wait(30)
    with folder.lock():
        """A process that was killed leaves no lock."""


def test_another_party_on_the_same_machine_may_run(
    folder: PartyFolder, tmp_path: Path
) -> None:
    other = PartyFolder(tmp_path / "home", "s", "b")
    with folder.lock(), other.lock(), pytest.raises(NotReady), folder.lock():
        pytest.fail("both run")


# Invitations

SECRET = bytes(range(32))
COORDINATOR = Institution("", bytes(32))
INVITATION = Invitation(
    url="https://analyst.example:8443",
    session="wards-2026",
    slot="hospital-a",
    code="a_b-C1" * 4,
    secret=SECRET,
    terms="ab" * 32,
    coordinator=COORDINATOR.key,
    signature=sign_terms(COORDINATOR, "ab" * 32),
)


@pytest.mark.parametrize("around", ["", " ", "\n"])
def test_an_invitation_is_read_back_from_its_text(around: str) -> None:
    assert Invitation.parse(around + str(INVITATION) + around) == INVITATION


def test_what_is_secret_follows_the_sign_that_no_client_sends() -> None:
    sent, _, kept = str(INVITATION).partition("#")
    assert sent == INVITATION.url
    assert INVITATION.code in kept
    assert SECRET.hex() in kept


def test_an_invitation_shows_no_secret() -> None:
    shown = repr(INVITATION)
    assert INVITATION.slot in shown
    for secret in (INVITATION.code, SECRET.hex(), repr(SECRET)):
        assert secret not in shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://analyst.example:8443", ""),
        ("https://", "ftp://"),
        ("#coterie-2", "#coterie-1"),
        ("#", ""),
        ("wards-2026", ""),
        ("wards-2026", ".."),
        ("hospital-a", ".."),
        ("hospital-a", "Hospital A"),
        ("hospital-a/", ""),
        ("hospital-a", "a" * 64),
        ("hospital-a", "../../tmp"),
        (SECRET.hex(), ""),
        (SECRET.hex(), SECRET.hex()[1:]),
        (SECRET.hex(), SECRET.hex() + "00"),
        (SECRET.hex(), "x" * 64),
        (SECRET.hex(), SECRET.hex() + "/more"),
        ("ab" * 32, "ac" + "ab" * 31),
        (COORDINATOR.key, Institution("", bytes(31) + b"1").key),
        (INVITATION.signature, "00" * 64),
        ("/" + INVITATION.signature, ""),
    ],
)
def test_what_is_no_invitation_is_refused_without_repeating_it(
    old: str, new: str
) -> None:
    text = str(INVITATION)
    assert old in text
    with pytest.raises(InvalidParameters, match="not an invitation") as raised:
        Invitation.parse(text.replace(old, new, 1))
    assert INVITATION.code not in str(raised.value)


# Homes


def test_the_home_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path))
    assert default_home() == tmp_path
    monkeypatch.delenv("COTERIE_HOME")
    assert default_home() == Path.home() / ".coterie"


def test_invitations_need_the_secret_that_only_the_opener_keeps(
    tmp_path: Path,
) -> None:
    elsewhere = CoordinatedSession("s", None, tmp_path)  # type: ignore[arg-type]  # it is not asked
    with pytest.raises(NotReady, match="not on this machine"):
        elsewhere.invite()
