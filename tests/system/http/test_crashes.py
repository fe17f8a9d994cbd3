"""Sessions end with the same labels wherever an analyst or a party is killed."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest
import sqlalchemy as sa
from support import warm
from support.analyst_process import COTERIE, Analyst, Crowd, wait_for
from support.databases import Databases, each_on_a_database
from support.repeats import thorough
from support.tables import write_csv
from support.warm import with_constants

from analyst_service.models import AuditLine, Contribution
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import signed_logs
from tests.service.samples import PARTS, A, B
from tests.system.http import faulty

PARAMS = Dummy(n_clusters=3, void_attempts=1)
PROGRAM = str(Path(faulty.__file__))
RUNS = thorough(ci=1, nightly=25)


@pytest.fixture(scope="module")
def fragile_of_the_file(
    database_kind: str, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Analyst]:
    folder = tmp_path_factory.mktemp("fragile")
    with databases.current(database_kind, folder) as url:
        analyst = Analyst(folder / "analyst", url, program=PROGRAM)
        analyst.environment |= {
            **with_constants({"analyst_service.process_context.LEASE_SECONDS": 0.5}),
            "COTERIE_TEST_FAULT": str(folder / "fault"),
        }
        with analyst:
            yield analyst


@pytest.fixture
def fragile(fragile_of_the_file: Analyst) -> Analyst:
    """An analyst that kills itself at the place that a test names."""
    fault = Path(fragile_of_the_file.environment["COTERIE_TEST_FAULT"])
    fault.unlink(missing_ok=True)
    fragile_of_the_file.start_unless_running()
    return fragile_of_the_file


def assert_nothing_is_lost(analyst: Analyst, crowd: Crowd) -> None:
    """Labels, rows, blobs and receipts are those of a run without a fault."""
    session = crowd.session.id
    assert crowd.labels() == crowd.expected()
    with analyst.database() as connection:
        own = sa.select(Contribution).where(Contribution.session_id == session)
        rows = connection.execute(own).all()
        lines = connection.scalars(
            sa.select(AuditLine.line)
            .where(AuditLine.session_id == session)
            .order_by(AuditLine.number)
        ).all()
    assert len(rows) == 2 * 6, "two parties, five rounds and one of them twice"
    events = Counter(entry["event"] for entry in hash_chain.read(lines))
    assert events["contribution"] == len(rows)
    assert events["round-opened"] == 6
    assert events["finished"] == 1


def crowd_of(analyst: Analyst, home: Path, session: str) -> Crowd:
    return Crowd(analyst, home, PARAMS, PARTS, session=session)


@pytest.mark.thorough
@pytest.mark.threat(42, 43, 51, 52)
@each_on_a_database("fault", faulty.UPLOAD + faulty.COMMIT + faulty.STEP)
def test_an_analyst_killed_around_an_upload_or_a_step_loses_nothing(
    fragile: Analyst, home: Path, session_id: str, fault: str
) -> None:
    for number in range(RUNS):
        with ExitStack() as stack:
            crowd = crowd_of(fragile, home, f"{session_id}-{number}")
            stack.callback(crowd.close)
            Path(fragile.environment["COTERIE_TEST_FAULT"]).write_text(fault)
            crowd.start()
            assert fragile.process is not None
            assert fragile.process.wait(300) == -signal.SIGKILL
            for path in (fragile.data_dir / "blobs").glob("??/*"):
                assert sha256(path.read_bytes()).hexdigest() == path.name
            fragile.start()
            assert_nothing_is_lost(fragile, crowd)


@pytest.mark.thorough
@pytest.mark.threat(50)
@each_on_a_database("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_analyst_ended_in_each_state_goes_on_in_it(
    analyst: Analyst, home: Path, session_id: str, how: signal.Signals
) -> None:
    def again() -> float:
        before = crowd.session.status()
        begin = time.monotonic()
        analyst.kill(how)
        took = time.monotonic() - begin
        analyst.start()
        after = crowd.session.status()
        assert (after.state, after.round, after.awaited_slots) == (
            before.state,
            before.round,
            before.awaited_slots,
        )
        return took

    with ExitStack() as stack:
        crowd = crowd_of(analyst, home, session_id)
        stack.callback(crowd.close)
        took = [again()]  # recruiting, nobody there
        crowd.party(B).enrol(PARTS.data[B])
        took.append(again())  # recruiting, half of them there
        crowd.start(A)
        wait_for(lambda: crowd.session.status().awaited_slots == [B])
        assert crowd.session.status().state == "collecting"
        took.append(again())  # collecting, half of the uploads there
        crowd.start(B)
        assert_nothing_is_lost(analyst, crowd)
        took.append(again())  # completed
        assert max(took) < 15


ONLY = pytest.mark.thorough(only=True)
COMMITS = [f"{when} commit {n}" for n in range(1, 21) for when in ("before", "after")]


@pytest.mark.threat(44)
@pytest.mark.parametrize("fault", faulty.PARTY)
def test_a_party_killed_around_an_upload_sends_the_same_bytes(
    gather: Callable[..., Crowd], tmp_path: Path, fault: str
) -> None:
    crowd = gather(PARAMS, PARTS)
    goes_on_after(crowd, tmp_path, fault, crowd.session.id, A)


@pytest.mark.threat(44)
@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, marks=[] if each.endswith(" 9") else ONLY) for each in COMMITS],
)
def test_a_party_killed_around_a_transaction_of_its_home_goes_on(
    gather: Callable[..., Crowd], tmp_path: Path, fault: str
) -> None:
    crowd = gather(PARAMS, PARTS)
    goes_on_after(crowd, tmp_path, fault, crowd.invitations[A])


def goes_on_after(crowd: Crowd, tmp_path: Path, fault: str, *again: str) -> None:
    """Kill a party at a place, and run it again with the words ``again``."""
    crowd.start(B)
    out, entropy = tmp_path / "labels.csv", tmp_path / "entropy"
    entropy.write_text(crowd.keys[A].hex())
    write_csv(tmp_path / "rows.csv", PARTS.data[A])
    common = ["--data", str(tmp_path / "rows.csv"), "--id-column", "id", "--home"]
    common += [str(crowd.home), "--labels", str(out)]
    common += ["--guard", 'accepted_risks=["dummy.by-design","house.open-slot"]']
    common += ["--guard", "least_known=0"]
    common += ["--entropy-file", str(entropy)]
    run = [*warm.command(PROGRAM), "party", "run", crowd.invitations[A], *common]
    environment = os.environ | {"COTERIE_TEST_FAULT": str(tmp_path / "fault")}
    (tmp_path / "fault").write_text(fault)
    died = subprocess.run(run, env=environment, check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    resume = [*warm.command(COTERIE), "party", "run", *again, *common]
    subprocess.run(resume, check=True, capture_output=True)
    written = [int(line.split(",")[1]) for line in out.read_text().splitlines()[1:]]
    assert written == crowd.expected()[A]
    assert_nothing_is_lost_at_the_party(crowd)
    crowd.join()


def assert_nothing_is_lost_at_the_party(crowd: Crowd) -> None:
    """Assert one contribution and one receipt per round and attempt, in both logs."""
    log = crowd.party(A).stored.ledger
    ledger = log.verified_entries()
    sent = Counter(
        (e["round"], e["attempt"]) for e in ledger if e["event"] == "sending"
    )
    got = Counter((e["round"], e["attempt"]) for e in ledger if e["event"] == "receipt")
    assert sent == got == Counter([(1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (5, 1)])
    own = Institution.derive(crowd.keys[A])
    signed = signed_logs.sign_ledger(own, crowd.session.id, A, log.verified_lines)
    assert signed_logs.compare_logs(crowd.session.audit(), signed) == len(sent)
