"""What a party and a coordinator keep: private, whole, and told apart from others'."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from clustering_protocols.common.errors import Equivocation, InvalidParameters, NotReady
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.shared_stages.row_selection import AdmittedRows
from clustering_protocols.terms.roster_entries import sign_terms
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.files import default_home
from party_sdk.party.party_session import Document, DurableState, Identity, PartySession

CONTRIBUTION = b"what was sent"
STANDING = DurableState(
    round=3,
    attempt=2,
    task_digest="ab" * 32,
    contribution_digest=sha256(CONTRIBUTION).hexdigest(),
    contribution=CONTRIBUTION,
    journal=Journal(round=3, attempt=2),
    before=Memory({"own-word": b"one", "position": b""}),
    after=Memory({"own-word": b"one", "position": b"3", "heard-word": bytes(9)}),
)
IDENTITY = Identity(
    invitation="https://a#coterie-2/s/a/code/secret",
    entropy="e" * 64,
    terms="{}",
    token="pt_token",
)


@pytest.fixture
def folder(tmp_path: Path) -> PartySession:
    return PartySession(tmp_path / "home", "s", "a")


ARRIVED = AdmittedRows(rows=np.array([2, 0]), n_rows=3)


def fill(folder: PartySession) -> None:
    folder.save_identity(IDENTITY)
    folder.save_document(Document.AGREEMENT, b"agreement")
    folder.save_document(Document.ADMITTED_ROWS, ARRIVED.encode())
    folder.save_state(STANDING, DurableState())
    folder.save_document(Document.RESULT, b"result")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def open_umask() -> Iterator[None]:
    """An operator whose files are open to everybody by default."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_only_its_owner_reads_what_a_party_keeps(folder: PartySession) -> None:
    with folder.lock():
        fill(folder)
        names = {path.name: mode(path) for path in folder.home.iterdir()}
    assert {"home.db", "home.db-wal", "home.db-shm"} < names.keys()
    assert len(names) == 4, "and one of the lease"
    assert set(names.values()) == {0o600}
    assert mode(folder.home) == 0o700


def test_what_is_kept_is_read_back(folder: PartySession) -> None:
    fill(folder)
    again = PartySession(folder.home, "s", "a")
    assert again.exists
    assert again.load_identity() == IDENTITY
    assert again.agreement == b"agreement"
    assert again.result == b"result"
    assert facts(again.load_state()) == facts(STANDING)
    assert again.load_state().sent_contribution == CONTRIBUTION


def facts(standing: DurableState) -> tuple[object, ...]:
    return (
        standing.contribution,
        standing.journal.encode(),
        standing.round_key,
        standing.task_digest,
        standing.contribution_digest,
        standing.before.entries,
        standing.after.entries,
    )


def test_before_the_first_round_nothing_is_known(folder: PartySession) -> None:
    assert not folder.exists
    assert facts(folder.load_state()) == facts(DurableState())
    assert folder.agreement is None
    assert folder.result is None
    with pytest.raises(NotReady, match="join first"):
        folder.load_identity()


def test_sessions_and_slots_are_told_apart(tmp_path: Path) -> None:
    parties = [PartySession(tmp_path, one, other) for one in "st" for other in "ab"]
    for number, party in enumerate(parties):
        party.save_document(Document.RESULT, b"%d" % number)
    assert [party.result for party in parties] == [b"0", b"1", b"2", b"3"]


def test_forgetting_everything_leaves_nothing(folder: PartySession) -> None:
    fill(folder)
    folder.ledger.log_joining("a" * 64)
    folder.forget(everything=True)
    assert not folder.exists
    tables = [
        name
        for [name] in folder.store.fetch_rows(
            "SELECT name FROM sqlite_schema "
            "WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
    ]
    for table in tables:
        assert folder.store.fetch_rows(f"SELECT * FROM {table}") == [], table


def test_log_agreement_and_report_outlive_the_rest(folder: PartySession) -> None:
    fill(folder)
    folder.ledger.log_joining("a" * 64)
    log, agreement = folder.ledger.verified_lines, folder.agreement
    assert folder.last_forgotten() is None
    folder.forget(b"{}")
    assert not folder.exists
    left = folder.last_forgotten()
    assert left.ledger.verified_lines == log
    assert (left.agreement, left.report, left.result) == (agreement, b"{}", None)
    assert facts(left.load_state()) == facts(DurableState())
    assert (left.session, left.slot) == (folder.session, folder.slot)


@pytest.mark.parametrize("everything", [True, False])
def test_what_was_forgotten_is_in_no_file_of_the_home(
    folder: PartySession, *, everything: bool
) -> None:
    """Secrets, memory, contribution and result: overwritten, not only unlinked."""
    fill(folder)
    big = bytes(range(256)) * 4096
    state = replace(STANDING, contribution=big[1:])
    folder.save_state(state, STANDING)
    folder.save_document(Document.RESULT, big)
    hidden = (IDENTITY.entropy, "pt_token", "own-word", big[:256], CONTRIBUTION)
    words = [each.encode() if isinstance(each, str) else each for each in hidden]
    assert all(word in raw(folder.home) for word in words)
    folder.forget(everything=everything)
    assert not [word for word in words if word in raw(folder.home)]
    folder.store.close()
    assert not [word for word in words if word in raw(folder.home)]


def raw(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_party_that_joins_anew_begins_a_log_of_its_own(tmp_path: Path) -> None:
    for digest in ("a" * 64, "b" * 64):
        folder = PartySession(tmp_path, "s", "a")
        fill(folder)
        folder.ledger.log_joining(digest)
        assert [entry["digest"] for entry in folder.ledger.verified_entries()] == [
            digest
        ]
        folder.forget()
    left = PartySession(tmp_path, "s", "a").last_forgotten()
    assert [entry["digest"] for entry in left.ledger.verified_entries()] == ["b" * 64]


def test_a_contribution_that_was_changed_on_disk_is_not_sent(
    folder: PartySession,
) -> None:
    changed = replace(STANDING, contribution=CONTRIBUTION + b"!")
    folder.save_state(changed, DurableState())
    with pytest.raises(NotReady, match="was changed"):
        _ = folder.load_state().sent_contribution


def test_memory_follows_rounds_and_attempts(folder: PartySession) -> None:
    """What is written is only what changed; what is read is all of it."""
    state, memory = DurableState(), Memory()
    steps: list[tuple[int, int, dict[str, bytes]]] = [
        (1, 1, {"x": b"1", "big": bytes(9000)}),
        (2, 1, {"x": b"2", "y": b"1"}),
        (2, 2, {"x": b"3"}),
        (3, 1, {"z": b""}),
    ]
    for round_, attempt, changes in steps:
        before = state.memory_before(round_, attempt)
        memory = Memory(before.entries | changes)
        fresh = DurableState(
            round=round_,
            attempt=attempt,
            contribution=b"%d" % round_,
            before=before,
            after=memory,
        )
        folder.save_state(fresh, state)
        state = fresh
        assert facts(PartySession(folder.home, "s", "a").load_state()) == facts(fresh)
    assert memory.entries == {"x": b"3", "big": bytes(9000), "z": b""}


def test_only_a_later_round_or_attempt_has_a_memory_to_start_from() -> None:
    for round_ in (4, 9):
        assert STANDING.memory_before(round_, 1) is STANDING.after
    for attempt in (3, 5):
        assert STANDING.memory_before(3, attempt) is STANDING.before
    for round_, attempt in ((3, 2), (3, 1), (2, 9)):
        with pytest.raises(Equivocation, match="after round 3, attempt 2"):
            STANDING.memory_before(round_, attempt)


HOLD = """
import sys, time
from pathlib import Path
from party_sdk.party.party_session import PartySession
with PartySession(Path(sys.argv[1]), "s", "a").lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_of_the_same_party_is_refused(folder: PartySession) -> None:
    fill(folder)
    command = [sys.executable, "-c", HOLD, str(folder.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        assert not folder.is_free
        with pytest.raises(NotReady, match="Another process"), folder.lock():
            pytest.fail("both run")
        other.send_signal(signal.SIGKILL)
        other.wait(30)
    with folder.lock():
        """A process that was killed leaves no lease."""
    assert folder.is_free
    assert not list(folder.home.glob("*.lock"))


def test_another_party_on_the_same_machine_may_run(
    folder: PartySession, tmp_path: Path
) -> None:
    other = PartySession(tmp_path / "home", "s", "b")
    with folder.lock(), other.lock(), pytest.raises(NotReady), folder.lock():
        pytest.fail("both run")


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


def test_an_invitation_and_an_identity_show_no_secret() -> None:
    shown = f"{INVITATION!r} {IDENTITY!r} {IDENTITY}"
    assert INVITATION.slot in shown
    own = (IDENTITY.entropy, IDENTITY.token, "code/secret")
    for secret in (*own, INVITATION.code, SECRET.hex(), repr(SECRET)):
        assert str(secret) not in shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://analyst.example:8443", ""),
        ("https://", "ftp://"),
        ("https://analyst.example:8443", "http://[::1"),
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
    with pytest.raises(
        InvalidParameters, match=r"not an invitation|URL is invalid|signature"
    ) as raised:
        Invitation.parse(text.replace(old, new, 1))
    assert INVITATION.code not in str(raised.value)


def test_the_home_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path))
    assert default_home() == tmp_path
    monkeypatch.delenv("COTERIE_HOME")
    assert default_home() == Path.home() / ".coterie"
