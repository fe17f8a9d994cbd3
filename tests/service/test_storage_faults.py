"""If database or disk fail, a 2xx is still true, and a failed upload may be repeated."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from psycopg import errors as pg
from sqlalchemy.exc import OperationalError, TimeoutError as PoolTimeout
from sqlalchemy.orm import Session as Transaction
from support.databases import cut_off
from support.in_process import Api, ByHand, StartApi

from analyst_service.blobs import FileDraft
from analyst_service.database import _REPEATS, Database
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS, A, B, problem_of

pytestmark = pytest.mark.usefixtures("in_blobs")


@pytest.fixture
def session(api: Api) -> ByHand:
    return api.open(Dummy(), PARTS).join()


@pytest.fixture
def far_api(postgres_url: str, start_api: StartApi) -> Iterator[Api]:
    """An analyst whose database a test can cut off."""
    with start_api(database_url=postgres_url) as api:
        yield api


@pytest.mark.postgres
@pytest.mark.threat(57)
def test_requests_fail_without_a_database_and_resume_with_it(
    far_api: Api, postgres_url: str
) -> None:
    session = far_api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    with cut_off(postgres_url):
        for response in (
            session.put(A, content, session.place(content)),
            far_api.send("GET", session.path, session.key),
            far_api.send("GET", "/readyz"),
        ):
            assert problem_of(response) is Problem.UNAVAILABLE
            assert response.headers["retry-after"] == "2"
        assert far_api.send("GET", "/healthz").status_code == 200
        with pytest.raises(OperationalError):
            far_api.turn()
    far_api.clock.forward(60)  # what was told a moment ago is told again
    assert far_api.send("GET", "/readyz").status_code == 200
    assert session.put(A, content).status_code == 201
    session.answer(B)
    assert session.finish().status["state"] == "completed"


@pytest.mark.postgres
@pytest.mark.threat(42, 43, 57)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_lost_around_a_commit_costs_one_repeat(
    far_api: Api, postgres_url: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = far_api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    keep, commit = FileDraft.store_as_blob, sa.engine.default.DefaultDialect.do_commit

    def keep_and_cut(self: FileDraft) -> None:
        keep(self)
        away.enter_context(cut_off(postgres_url))

    def commit_and_lose(self: Any, connection: Any) -> None:
        commit(self, connection)
        away.enter_context(cut_off(postgres_url))
        raise pg.OperationalError("the line broke before the answer came")

    with ExitStack() as away, monkeypatch.context() as context:
        if moment == "before":
            context.setattr(FileDraft, "store_as_blob", keep_and_cut)
        else:
            context.setattr(
                sa.engine.default.DefaultDialect, "do_commit", commit_and_lose
            )
        response = session.put(A, content, session.place(content))
        assert problem_of(response) is Problem.UNAVAILABLE
    again = session.put(A, content)
    assert again.status_code == {"before": 201, "after": 200}[moment]
    rows, _ = far_api.stored()
    assert len(rows["contributions"]) == 1
    session.answer(B)
    assert session.finish().status["state"] == "completed"


@pytest.mark.threat(52, 57)
@pytest.mark.parametrize(
    "gone",
    [OperationalError("UPDATE", {}, Exception("gone")), PoolTimeout("no connection")],
)
def test_an_outcome_is_stored_once_the_database_is_back(
    api: Api, monkeypatch: pytest.MonkeyPatch, gone: Exception
) -> None:
    session = api.open(Dummy(), PARTS).join(turn=False)
    api.driver._start_processes()
    api.driver._start_steps()
    with monkeypatch.context() as context:
        context.setattr(api.service.database, "write", Mock(side_effect=gone))
        with pytest.raises(type(gone)):
            api.driver._collect_outcomes()
    assert session.status["state"] == "stepping"
    api.driver._collect_outcomes()
    assert session.status["state"] == "collecting"


def failing(times: int, error: Exception) -> Callable[..., Any]:
    """Return a ``Database.write`` whose commit fails so many times before it works."""
    write, left = Database.write, [times]

    @contextmanager
    def writes(self: Database) -> Iterator[Transaction]:
        with write(self) as transaction:
            yield transaction
            if left[0]:
                left[0] -= 1
                raise error

    return writes


CONFLICT = OperationalError("COMMIT", {}, pg.SerializationFailure())


@pytest.mark.threat(58)
@pytest.mark.parametrize("what", ["upload", "step"])
def test_a_conflict_that_comes_five_times_is_settled_inside(
    session: ByHand, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    assert _REPEATS == 5
    api = session.api
    content = session.reply(A)
    if what == "step":
        session.answer(A, B, turn=False)
    with monkeypatch.context() as context:
        context.setattr(Database, "write", failing(5, CONFLICT))
        if what == "upload":
            assert session.put(A, content).status_code == 201
        else:
            api.turn()
            assert session.status["round"] == 2


@pytest.mark.threat(58)
def test_a_conflict_without_end_is_told_and_leaves_nothing(
    session: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = session.reply(A)
    before, _ = session.api.stored()
    with monkeypatch.context() as context:
        context.setattr(Database, "write", failing(100, CONFLICT))
        assert problem_of(session.put(A, content)) is Problem.UNAVAILABLE
    assert session.api.stored()[0] == before
    assert session.put(A, content).status_code == 201


@contextmanager
def no_room(monkeypatch: pytest.MonkeyPatch, where: str) -> Iterator[None]:
    """Make the disk full for drafts as they are written or sealed, or for the database."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as context:
        if where == "database":
            cause = Mock(sqlstate="53100", sqlite_errorname="SQLITE_FULL")
            error = OperationalError("INSERT", {}, sqlite3.OperationalError())
            error.orig = cause
            context.setattr(Database, "write", failing(1, error))
        elif where == "opening":
            open_file = Path.open

            def open_on_full_disk(path: Path, mode: str = "r", *args: Any) -> Any:
                if mode == "xb":
                    raise full
                return open_file(path, mode, *args)

            context.setattr(Path, "open", open_on_full_disk)
        elif where == "sync":
            context.setattr(os, "fsync", Mock(side_effect=full))
        else:
            begin = FileDraft.__init__

            def on_full_device(self: FileDraft, *args: Any) -> None:
                begin(self, *args)
                self._file.close()
                buffering = 0 if where == "streaming" else -1  # a short draft fits
                self._file = Path("/dev/full").open("wb", buffering)  # type: ignore[assignment]  # noqa: SIM115  fails as a full disk does

            context.setattr(FileDraft, "__init__", on_full_device)
        yield


@pytest.mark.threat(59)
@pytest.mark.parametrize(
    "where", ["opening", "streaming", "sealing", "sync", "database"]
)
def test_a_full_disk_is_reported_and_the_upload_works_later(
    session: ByHand, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    content = session.reply(A)
    before, _ = session.api.stored()
    with no_room(monkeypatch, where):
        assert problem_of(session.put(A, content)) is Problem.STORAGE_FULL
    assert session.api.stored()[0] == before
    assert not list(
        (session.api.service.settings.blob_location.folder / "tmp").iterdir()
    )
    assert session.api.send("GET", session.path, session.key).status_code == 200
    assert session.put(A, content).status_code == 201


@pytest.mark.threat(59)
def test_a_database_that_is_really_full_says_so(api: Api) -> None:
    session, statuses = api.open(Dummy(), PARTS).join(), set()

    @sa.event.listens_for(api.service.database.engine, "checkout")
    def limit(connection: Any, *_: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    for number in range(40):
        body = {**session.terms, "about": {"title": "x" * 200}}
        answer = api.send("PUT", f"/v1/sessions/s-{number}", session.key, json=body)
        statuses.add(answer.status_code)
    assert statuses == {201, 507}
    sa.event.remove(api.service.database.engine, "checkout", limit)


@pytest.mark.threat(60)
@pytest.mark.parametrize("which", [1, 2], ids=["file", "folder"])
def test_a_failed_sync_is_an_error_and_its_file_is_not_reused(
    session: ByHand, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    content = session.reply(A)
    before, _ = session.api.stored()
    calls: list[int] = []

    def sync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == which:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as context:
        context.setattr(os, "fsync", sync)
        assert problem_of(session.put(A, content)) is Problem.INTERNAL
    assert len(calls) == which, "the same file is not synced again"
    assert session.api.stored()[0] == before
    assert session.task(A).status_code == 200, "the answer is still asked for"
    again = session.put(A, content)
    assert again.status_code == 201
    assert again.json()["digest"] == sha256(content).hexdigest()


@pytest.mark.postgres
def test_no_request_gets_a_connection_that_has_ended(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, one = Database(Settings(database_url=postgres_url).database), sa.select(1)
    with database.read() as first, database.read() as second:
        first.execute(one), second.execute(one)
    with cut_off(postgres_url):
        pass
    with pytest.raises(OperationalError), database.write() as transaction:
        transaction.execute(one)  # it was used a moment ago
    with database.write() as transaction:  # and the others are not tried at all
        transaction.execute(one)
    monkeypatch.setattr("analyst_service.database._IDLE_SECONDS", 0.0)
    with cut_off(postgres_url):
        pass
    with database.read() as first, database.write() as second:
        first.execute(one), second.execute(one)
    database.close()
