"""The database of a home: crashes, full disks, other processes, other releases."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from clustering_protocols.common.errors import InvalidParameters, NotReady
from party_sdk.home.files import write_private
from party_sdk.home.store import VERSION, HomeStore
from party_sdk.party.party_session import Document, PartySession

BIG = 20_000
"""Bytes of a document: several pages of the database."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fill(home: Path, n_turns: int) -> PartySession:
    party = PartySession(home, "s", "a")
    for turn in range(n_turns):
        write_turn(party, turn)
    return party


def write_turn(party: PartySession, turn: int) -> None:
    with party.store.transaction():
        party.save_document(Document.RESULT, b"%d" % turn * BIG)
        party.save_document(Document.AGREEMENT, b"%d" % turn)
        party.ledger.log_joining(f"{turn}")


def turn_of(home: Path) -> int:
    """Return the last turn of a home, all of which is there."""
    store = HomeStore(home)
    assert store.find_damage() == ""
    store.close()
    party = PartySession(home, "s", "a")
    turn = int(party.agreement or b"-1")
    entries = party.ledger.verified_entries()
    assert len(entries) == turn + 1
    if turn >= 0:
        assert party.result == b"%d" % turn * BIG
        assert entries[-1]["digest"] == f"{turn}"
    return turn


def child(code: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    program = f"from tests.party.test_home_store import *\nimport sys\n{code}"
    command = [sys.executable, "-c", program, *map(str, words)]
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": tests}
    return subprocess.run(command, check=False, capture_output=True, env=environment)


KILLED_AT = """
import os, signal

home, place = Path(sys.argv[1]), sys.argv[2]
party = fill(home, 3)

def traced(statement):
    if statement.startswith(place):
        os.kill(os.getpid(), signal.SIGKILL)

party.store._open().set_trace_callback(traced)
write_turn(party, 3)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.threat(44)
@pytest.mark.parametrize(
    ("place", "turn"),
    [
        ("BEGIN", 2),
        ("DELETE FROM documents", 2),
        ("INSERT INTO documents", 2),
        ("INSERT INTO ledger", 2),
        ("COMMIT", 2),
        ("nowhere: after it", 3),
    ],
)
def test_a_process_killed_around_a_transaction_leaves_all_or_nothing(
    home: Path, place: str, turn: int
) -> None:
    assert child(KILLED_AT, home, place).returncode == -signal.SIGKILL
    assert turn_of(home) == turn
    write_turn(PartySession(home, "s", "a"), turn + 1)
    assert turn_of(home) == turn + 1


@pytest.mark.threat(44)
@pytest.mark.parametrize("bytes_lost", [1, 100, 4096, 20_000])
def test_a_torn_log_leaves_the_transaction_before(
    home: Path, tmp_path: Path, bytes_lost: int
) -> None:
    """What a power cut may leave of the write-ahead log: part of its end, or zeros."""
    fill(home, 3)
    for number, filling in enumerate((b"", bytes(bytes_lost))):
        copy = tmp_path / str(number)
        shutil.copytree(home, copy)
        log = copy / "home.db-wal"
        (copy / "home.db-shm").unlink()
        log.write_bytes(log.read_bytes()[:-bytes_lost] + filling)
        assert turn_of(copy) == 1


def test_an_exception_takes_the_whole_transaction_back(home: Path) -> None:
    party = fill(home, 1)
    with pytest.raises(KeyboardInterrupt), party.store.transaction():  # noqa: PT012  both belong in it
        write_turn(party, 1)
        raise KeyboardInterrupt
    assert turn_of(home) == 0


def test_what_must_be_durable_is_no_part_of_what_is_not(home: Path) -> None:
    party = fill(home, 1)
    with (
        pytest.raises(RuntimeError, match="not durable"),
        party.store.transaction(durable=False),
    ):
        write_turn(party, 1)
    assert turn_of(home) == 0


FULL = """
import resource
home = Path(sys.argv[1])
party = fill(home, 3)
grown = (home / "home.db-wal").stat().st_size + 30_000
resource.setrlimit(resource.RLIMIT_FSIZE, (grown, resource.RLIM_INFINITY))
try:
    for turn in range(3, 100):
        write_turn(party, turn)
except StorageFull as full:
    assert "has no room" in full.detail, full.detail
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert turn_of(home) == turn - 1
    write_turn(party, turn)
    assert turn_of(home) == turn
    print("survived")
"""


@pytest.mark.threat(59)
def test_a_full_disk_is_reported_and_nothing_is_lost(home: Path) -> None:
    done = child(
        "from clustering_protocols.common.errors import StorageFull" + FULL, home
    )
    assert done.stdout == b"survived\n", done.stderr


READ_ONLY = """
import os
from clustering_protocols.common.errors import InvalidParameters
party = PartySession(Path(sys.argv[1]), "s", "a")
if os.geteuid() == 0:
    os.seteuid(65534)
for use in (lambda: party.result, lambda: write_turn(party, 1)):
    try:
        use()
    except InvalidParameters as error:
        assert "cannot be read or written" in error.detail, error.detail
        print("said")
"""


def test_a_home_on_a_read_only_disk_says_so_and_stays() -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder, "home")
        fill(place, 1).store.close()
        (place / "home.db").chmod(0o444)
        place.chmod(0o555)
        Path(folder).chmod(0o755)
        try:
            done = child(READ_ONLY, place)
        finally:
            place.chmod(0o700)
        assert done.stdout == b"said\nsaid\n", done.stderr
        (place / "home.db").chmod(0o600)
        assert turn_of(place) == 0


def test_reading_makes_no_home(home: Path) -> None:
    assert PartySession(home, "s", "a").result is None
    assert not home.exists()


def test_a_home_of_a_newer_release_is_refused_in_a_sentence(home: Path) -> None:
    store = fill(home, 1).store
    with store.transaction() as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        NotReady, match=rf"format version {VERSION + 1}, .* reads {VERSION}:"
    ):
        HomeStore(home).fetch_rows("SELECT * FROM parties")
    with (
        pytest.raises(NotReady, match="install the release"),
        HomeStore(home).transaction(),
    ):
        pytest.fail("it was written")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"not a database" + content[14:],
        lambda content: content[:4096] + b"\xff" * 4096 + content[8192:],
    ],
    ids=["header", "page"],
)
def test_a_damaged_home_is_noticed(
    home: Path, damage: Callable[[bytes], bytes]
) -> None:
    fill(home, 3).store.close()
    path = home / "home.db"
    path.write_bytes(damage(path.read_bytes()))
    assert "damaged" in HomeStore(home).find_damage()


MANY = """
party = PartySession(Path(sys.argv[1]), "s", "a")
for number in range(25):
    party.ledger.log_mapping(number, sys.argv[2])
"""


def test_two_processes_write_in_turns(home: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda name: child(MANY, home, name), "ab"))
    assert [each.returncode for each in done] == [0, 0], done
    entries = PartySession(home, "s", "a").ledger.verified_entries()
    assert sorted(each["digest"] for each in entries) == ["a"] * 25 + ["b"] * 25


def test_threads_of_a_process_write_in_turns(home: Path) -> None:
    def write(name: str) -> None:
        party = PartySession(home, "s", "a")
        for number in range(25):
            party.ledger.log_mapping(number, name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert len(PartySession(home, "s", "a").ledger.verified_entries()) == 100


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({3: "a"}, "no cluster 3"),
        ({0: "a" * 41}, "printable characters"),
        ({0: "a\tb"}, "printable characters"),
        ({0: "a", 1: "a"}, "the same name"),
    ],
)
def test_names_of_clusters_are_few_short_and_different(
    home: Path, names: dict[int, str], why: str
) -> None:
    party = fill(home, 1)
    with pytest.raises(InvalidParameters, match=why):
        party.name_clusters(names, 3)
    assert party.cluster_names == ()


def test_no_lease_is_held_without_a_lock(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(InvalidParameters, match="cannot be locked"),
        PartySession(home, "s", "a").lock(),
    ):
        pytest.fail("it runs")
    assert not list(home.glob(".*"))


def test_a_draft_that_cannot_be_renamed_is_removed(home: Path) -> None:
    (home / "labels").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_private(home / "labels", b"content")
    assert [path.name for path in home.iterdir()] == ["labels"]


def test_a_home_that_was_removed_is_made_anew(home: Path) -> None:
    fill(home, 2)
    shutil.rmtree(home)
    assert PartySession(home, "s", "a").result is None
    fill(home, 1)
    assert turn_of(home) == 0
