"""Outages: the log names each cause once, and parties and metrics show them."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from click.testing import Result
from support.in_process import Api, StartApi
from support.tls import certificate

from analyst_service import worker
from analyst_service.blobs import FileDraft
from analyst_service.database import Database, SystemClock
from analyst_service.logs import describe_error
from analyst_service.metrics import expiry_warning, read_expiry
from analyst_service.worker import WorkerDied, WorkerProcess, _describe_exit
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS, A, figures, problem_of

Run = Callable[..., Result]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[str], list[str]]]:
    def of(word: str) -> list[str]:
        ours = [r for r in caplog.records if r.name.startswith("analyst_service")]
        found = [(r.levelname, r.getMessage()) for r in ours]
        return [f"{level} {said}" for level, said in found if word in said]

    with caplog.at_level(logging.INFO):
        yield of


@pytest.mark.postgres
def test_a_failure_is_logged_with_its_code_or_reason_and_no_value(
    postgres_url: str,
) -> None:
    """A server that refuses a connection sends no SQLSTATE, so its reason is logged."""
    name, canary = f"refused_{os.getpid()}", sa.text("SELECT 'canary' FROM nowhere")
    with closing(Database(postgres_url)) as database:
        engine = database.engine
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE ROLE {name} NOLOGIN"))
        refused = sa.create_engine(engine.url.set(username=name, password="hush"))
        expected: dict[Callable[[], object], str] = {
            lambda: engine.connect().execute(
                canary
            ): "ProgrammingError SQLSTATE 42P01 at ",
            refused.connect: f'role "{name}" is not permitted to log in',
            Path("/proc/self/canary").read_text: "FileNotFoundError ENOENT at ",
        }
        for work, said in expected.items():
            with pytest.raises(Exception) as raised:  # noqa: PT011  which one is what is asked
                work()
            assert said in describe_error(raised.value)
            assert worker.describe_crash(raised.value).cause == describe_error(
                raised.value
            )
            assert "canary" not in describe_error(raised.value)
            assert "hush" not in describe_error(raised.value)
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP ROLE {name}"))


def test_a_change_of_readiness_is_one_line_with_its_reason(
    api: Api, monkeypatch: pytest.MonkeyPatch, lines: Any
) -> None:
    def ask(expected: int) -> None:
        for _ in range(3):
            api.clock.forward(2)
            assert api.send("GET", "/readyz").status_code == expected
        assert figures(api)["coterie_ready",] == (expected == 200)

    ask(200)
    assert not lines("ready")
    with monkeypatch.context() as patch:
        patch.setattr(Database, "has_current_schema", lambda _: False)
        ask(503)
    ask(200)
    with monkeypatch.context() as patch:
        patch.setattr(FileDraft, "__init__", Mock(side_effect=OSError(30, "read-only")))
        ask(503)
    ask(200)
    assert lines("ready") == [
        "ERROR not ready: The database has the schema of another release.",
        "INFO ready again",
        "ERROR not ready: The data folder cannot be written (EROFS).",
        "INFO ready again",
    ]
    api.service.start_draining()
    assert lines("shutting down") == ["INFO not ready: this analyst is shutting down"]


def test_low_disk_space_refuses_uploads_but_serves_results(
    api: Api, monkeypatch: pytest.MonkeyPatch, lines: Any
) -> None:
    """Analysts may share the full folder, so all of them have to stay ready."""
    ended = api.open(Dummy(), PARTS).join().finish()
    session = api.open(Dummy(), PARTS, session="second").join()
    content = session.reply(A)
    with monkeypatch.context() as patch:
        least = api.service.settings.least_free_bytes
        patch.setattr(api.service.blobs, "free_bytes", lambda: least - 1)
        api.clock.forward(2)
        assert api.send("GET", "/readyz").status_code == 200
        assert figures(api)["coterie_ready",] == 1
        refusal = session.put(A, content)
        assert problem_of(refusal) is Problem.STORAGE_FULL
        assert "The analyst has no room" in refusal.json()["detail"]
        assert api.send("GET", ended.path, ended.key).status_code == 200
        assert session.status["short_of_room"]
        assert len(lines("not room for uploads")) == 1
    api.clock.forward(2)
    assert api.send("GET", "/readyz").status_code == 200
    assert lines("room for uploads again")
    assert session.put(A, content).status_code == 201
    assert not session.status["short_of_room"]


def test_a_worker_that_is_killed_is_logged_with_signal_and_size() -> None:
    process = WorkerProcess()
    try:
        os.kill(process._child.pid or 0, signal.SIGKILL)
        process._listener.join(30)
        with pytest.raises(WorkerDied) as died:
            process.submit(None)  # type: ignore[arg-type]  # it is never read
    finally:
        process.kill()
    said = worker.describe_crash(died.value).cause
    assert "killed by signal 9 (SIGKILL): out of memory? It used at most " in said
    assert said.endswith(" MiB.")
    # of other ends nothing is said of memory
    assert (
        _describe_exit(-11) == "The worker process was killed by signal 11 (SIGSEGV)."
    )
    assert _describe_exit(1) == "The worker process ended with status 1."


@pytest.mark.parametrize(("days", "verb"), [(366, "ended"), (7, "ends"), (60, "")])
def test_a_certificate_near_its_end_is_warned_of(
    tmp_path: Path, days: int, verb: str
) -> None:
    certificate(tmp_path, days=days)
    path = tmp_path / "tls.pem"
    ends = read_expiry(path)
    now = SystemClock().now() if verb == "ended" else ends - timedelta(days=days)
    said = expiry_warning(path, ends, now)
    assert (f"{verb} on {ends:%Y-%m-%d}" in said) if verb else said == ""


@pytest.mark.usefixtures("serves")
def test_serve_warns_of_a_certificate_that_has_ended(tmp_path: Path, run: Run) -> None:
    certificate(tmp_path, days=366)
    assert run("migrate").exit_code == 0
    pem, key = tmp_path / "tls.pem", tmp_path / "tls.key"
    done = run("serve", "--certificate", pem, "--private-key", key)
    assert done.exit_code == 0, done.output
    assert "tls.pem ended on 2021-01-01 00:00 UTC; parties refuse it" in done.stderr
    shown = run("serve", COTERIE_CERTIFICATE_FILE=pem)
    assert shown.exit_code == 0, shown.output
    assert "ended on 2021-01-01" in shown.stderr
    refused = run("serve", COTERIE_CERTIFICATE_FILE=key)
    assert refused.exit_code == 1
    assert "COTERIE_CERTIFICATE_FILE" in refused.stderr


def test_a_metric_gives_the_days_left_of_the_certificate(
    start_api: StartApi, tmp_path: Path
) -> None:
    certificate(tmp_path, days=366)
    path = tmp_path / "tls.pem"
    with start_api(certificate_file=path) as api:
        left = (read_expiry(path) - api.clock.now()) / timedelta(days=1)
        assert figures(api)["coterie_certificate_days",] == pytest.approx(
            left, abs=0.01
        )
        certificate(tmp_path, days=376)
        assert figures(api)["coterie_certificate_days",] == pytest.approx(
            left + 10, abs=0.01
        )
        path.unlink()
        api.clock.forward(1)
        assert "certificate_days{" not in api.send("GET", "/metrics").text


def test_when_the_last_backup_ended_is_a_figure(
    start_api: StartApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    with start_api() as api:
        name = "coterie_last_backup_timestamp_seconds"
        assert figures(api)[name,] == 0
        before = SystemClock().now().timestamp() - 1
        data = str(api.service.settings.data_dir)
        done = run("backup", tmp_path / "monday", COTERIE_DATA_DIR=data)
        assert done.exit_code == 0, done.output
        assert before <= figures(api)[name,] <= SystemClock().now().timestamp()
        assert not (tmp_path / "monday" / "last-backup").exists()
        monkeypatch.setattr(Path, "touch", Mock(side_effect=OSError(30, "read-only")))
        done = run("backup", tmp_path / "tuesday", COTERIE_DATA_DIR=data)
        assert done.exit_code == 0, "the backup is whole nevertheless"
        assert "will not show this backup" in done.stderr


def test_how_long_a_session_waits_is_a_figure_of_its_state(api: Api) -> None:
    name = "coterie_longest_wait_seconds"
    assert figures(api)[name, "collecting"] == 0
    api.open(Dummy(), PARTS)
    api.clock.forward(3600)
    api.open(Dummy(), PARTS, session="second").join()
    api.clock.forward(60)
    assert figures(api)[name, "recruiting"] == pytest.approx(3660, abs=5)
    assert figures(api)[name, "collecting"] == pytest.approx(60, abs=5)
    assert figures(api)[name, "choosing"] == 0


def test_the_analysts_key_is_made_before_the_first_start(
    tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "identity.json"
    first = run("key", "identity", COTERIE_IDENTITY_FILE=str(path))
    assert first.exit_code == 0, first.output
    assert len(first.stdout.strip()) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    again = run("key", "identity", COTERIE_IDENTITY_FILE=str(path))
    assert again.stdout == first.stdout, "it is never replaced"
    assert not (tmp_path / "data" / "coterie.db").exists(), "it needs no database"
    path.write_text("nothing")
    spoilt = run("key", "identity", COTERIE_IDENTITY_FILE=str(path))
    assert spoilt.exit_code == 1
    assert "cannot be read" in spoilt.stderr
