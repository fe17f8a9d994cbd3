"""Which data are removed when, by settings and by signed terms."""

import os
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from support.analyst_process import wait_for
from support.in_process import Api, ByHand, StartApi
from support.repeats import thorough

from analyst_service import worker
from analyst_service.blobs import FileBlobStore
from analyst_service.credentials import list_tokens
from analyst_service.database import Database, lock_digests
from analyst_service.models import Contribution, Credential, Session, Task
from analyst_service.process_context import repeat_in_thread
from analyst_service.retention import (
    ORPHAN_AGE,
    SWEEP_SECONDS,
    remove_blobs,
    sweep,
    sweep_blobs,
)
from analyst_service.steps import build_job, store_result, take_lease
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.service.samples import PARTS, A, B, X

OTHERS = simulation.split(X[:20], Layout.lattice(2), seed=1)


def blobs_of(api: Api) -> set[str]:
    return {Path(name).name for name in api.stored()[1]}


def grow_old(api: Api) -> None:
    """Make all files older than a sweep needs."""
    old = api.service.blobs.file_time() - ORPHAN_AGE.total_seconds() - 1
    for name in api.stored()[1]:
        os.utime(name, (old, old))


def column(api: Api, what: Any, session: ByHand) -> set[Any]:
    table = what.class_
    owner = table.id if table is Session else table.session_id
    with api.service.database.read() as transaction:
        return set(transaction.scalars(sa.select(what).where(owner == session.id)))


@pytest.mark.usefixtures("in_blobs")
def test_an_ended_session_releases_its_stored_data(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join().finish()
    contributions = column(api, Contribution.digest, session)
    assert contributions < blobs_of(api)
    sweep(api.service)
    assert column(api, Contribution.digest, session) == contributions
    assert column(api, Task.digest, session) == set()
    results = {
        api.send("GET", f"{session.path}/result", secret).content
        for secret in (*session.tokens.values(), session.key)
    }
    assert len(blobs_of(api)) == len(results)
    before = api.stored()
    sweep(api.service)
    assert api.stored() == before


def test_an_ended_session_releases_the_answers_in_its_rows(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    session.put(A, content)
    assert column(api, Contribution.content, session) == {content}
    assert is_in_files(content[-64:], api)
    session.cancel()
    sweep(api.service)
    assert column(api, Contribution.content, session) == {None}
    assert not is_in_files(content[-64:], api)


def is_in_files(content: bytes, api: Api) -> bool:
    """Return whether a file of the data folder or of SQLite contains these bytes."""
    database = Path(api.service.database.engine.url.database or "")
    files = (api.service.settings.data_dir.rglob("*"), database.parent.glob("*.db*"))
    return any(content in path.read_bytes() for path in chain(*files) if path.is_file())


def test_the_receipt_of_what_was_purged_is_given_again(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    receipt = session.put(A, content)
    session.answer(B)
    session.finish()
    sweep(api.service)
    again = session.put(A, content)
    assert (again.status_code, again.json()) == (200, receipt.json())


def test_a_session_that_expired_is_purged_and_none_that_runs(api: Api) -> None:
    running = api.open(Dummy(), PARTS).join()
    running.answer(A, turn=False)
    session = api.open(Dummy(), OTHERS, deadlines={"round": 60}).join()
    session.answer(A, turn=False)
    api.clock.forward(60)
    api.turn()
    assert session.status["state"] == "expired"
    sweep(api.service)
    assert column(api, Session.purged_at, session) == {api.clock.now()}
    assert column(api, Session.purged_at, running) == {None}
    running.answer(B)
    assert running.finish().status["state"] == "completed"


@pytest.mark.usefixtures("in_blobs")
def test_what_another_session_holds_too_stays(api: Api) -> None:
    """Equal contributions are one blob, which is removed with the last of them."""
    first = api.open(Dummy(), PARTS).join()
    first.answer(A, turn=False)
    second = api.open(Dummy(), PARTS).join()
    [digest] = column(api, Contribution.digest, first)
    with api.service.database.write() as transaction:
        transaction.add(
            Contribution(
                session_id=second.id,
                round=9,
                attempt=1,
                slot=A,
                digest=digest,
                size=1,
                received_at=api.clock.now(),
                sequence=1,
                entry="",
            )
        )
    first.cancel()
    sweep(api.service)
    assert digest in blobs_of(api)
    second.cancel()
    sweep(api.service)
    assert digest not in blobs_of(api)


@pytest.mark.threat(40)
@pytest.mark.parametrize("state", ["recruiting", "completed"])
def test_deleting_leaves_the_audit_and_nothing_else(api: Api, state: str) -> None:
    session = api.open(Dummy(), PARTS, about={"title": "ward 7"}).join(A)
    if state == "completed":
        session.join(B).finish()
    gone = api.send("DELETE", session.path, session.key)
    assert (gone.status_code, gone.content) == (204, b"")
    rows, blobs = api.stored()
    for table in ("tasks", "contributions", "results", "members", "invitations"):
        assert rows[table] == [], table
    assert blobs == []
    assert "ward 7" not in repr(rows)
    for erased in (Session.stage, Session.reason, Session.detail, Session.progress):
        assert column(api, erased, session) == {None}
    events = [entry["event"] for entry in session.audit]
    assert (events[0], events[-1]) == ("opened", "deleted")
    assert ("cancel" in events) == (state != "completed")
    before = api.stored()
    assert api.send("DELETE", session.path, session.key).status_code == 204
    assert api.stored() == before


@pytest.mark.threat(40)
def test_a_deleted_session_is_over_and_its_id_stays_taken(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    api.send("DELETE", session.path, session.key)
    for method, path, secret in (
        ("GET", session.path, session.key),
        ("GET", f"{session.path}/agreement", session.key),
        ("POST", f"{session.path}/cancel", session.key),
        ("GET", f"{session.path}/task", session.tokens[A]),
        ("GET", f"{session.path}/result", session.tokens[A]),
    ):
        refusal = api.send(method, path, secret)
        assert refusal.status_code == 410, path
        assert refusal.json()["type"] == Problem.SESSION_OVER.urn
    path = f"{session.path}/rounds/1/attempts/1/contribution"
    assert session.put(A, content, path).status_code == 410
    assert session.try_join(A).status_code == 404
    again = api.send("PUT", session.path, session.key, json=session.terms)
    assert again.status_code == 409
    assert api.send("GET", "/v1/sessions", session.key).json()["sessions"] == []


def test_a_step_of_a_session_that_was_deleted_stores_nothing(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(turn=False)
    service, database = api.service, api.service.database
    lease = database.transact(take_lease, service.lease_span)
    assert lease is not None
    job = database.query(build_job, service, lease.session)
    api.send("DELETE", session.path, session.key)
    followed = worker.run_step(job)
    assert not database.transact(store_result, service.blobs, lease, followed)
    grow_old(api)
    sweep(api.service)
    assert api.stored()[1] == []


@pytest.mark.threat(51)
def test_what_a_crash_left_is_removed_within_an_hour(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    session.answer(A, turn=False)
    blobs = api.service.blobs
    named = blobs_of(api)
    orphan = blobs.put(b"nobody names this")
    draft = blobs.create_draft()
    draft.write(b"half")
    sweep(api.service)
    assert blobs.has(orphan), "a row may name it soon"
    grow_old(api)
    assert ORPHAN_AGE.total_seconds() + SWEEP_SECONDS < 3600
    sweep(api.service)
    assert blobs_of(api) == named
    draft.discard()


def test_a_sweep_measures_age_by_the_clock_of_the_store(api: Api) -> None:
    """A database server whose clock is ahead makes no young blob old."""
    young = api.service.blobs.put(b"a row may name this soon")
    api.clock.time = datetime(2999, 1, 1, tzinfo=UTC)
    sweep(api.service)
    assert api.service.blobs.has(young)


def test_a_full_store_does_not_stop_the_sweep(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = api.open(Dummy(), PARTS).join()
    session.cancel()
    full = StorageFull("The store has no room.")
    monkeypatch.setattr(FileBlobStore, "check_writable", Mock(side_effect=full))
    api.clock.forward(10)
    sweep(api.service)
    assert column(api, Session.purged_at, session) != {None}
    assert api.send("GET", "/readyz").status_code == 200


def test_a_sweep_is_repeated_and_says_when_it_fails(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = api.open(Dummy(), PARTS).join()
    session.cancel()
    with monkeypatch.context() as away:
        away.setattr(Database, "transact", Mock(side_effect=RuntimeError("canary")))
        with repeat_in_thread("sweeping", 0.01, partial(sweep, api.service)):
            wait_for(lambda: "not sweeping: RuntimeError at" in caplog.text)
            away.undo()
            wait_for(lambda: column(api, Session.purged_at, session) != {None})
    assert caplog.text.count("not sweeping") == 1
    assert "canary" not in caplog.text


@pytest.mark.thorough
@pytest.mark.usefixtures("in_blobs")
def test_an_upload_of_bytes_that_are_being_removed_survives(
    each_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes arrive after the sweep chose the blob and before it removes it."""
    session = each_api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    orphan = each_api.service.blobs.put(content)
    grow_old(each_api)
    at_once = Barrier(2)
    older_than = FileBlobStore.find_older_than

    def slowly(self: FileBlobStore, before: float) -> Any:
        found = list(older_than(self, before))
        at_once.wait(60)
        return iter(found)

    monkeypatch.setattr(FileBlobStore, "find_older_than", slowly)
    for _ in range(thorough(ci=3, nightly=100)):
        sweeping = Thread(target=sweep_blobs, args=(each_api.service,))
        sweeping.start()
        at_once.wait(60)
        assert session.put(A, content).status_code in {200, 201}
        sweeping.join()
        assert bytes(each_api.service.blobs.map(orphan)) == content


def test_a_removal_waits_for_a_transaction_that_uses_the_blob(each_api: Api) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    service = each_api.service
    digest = service.blobs.put(b"about to be named")
    removal = Thread(target=remove_blobs, args=(service, [digest]))
    with service.database.write() as transaction:
        lock_digests(transaction, [digest])
        removal.start()
        removal.join(0.3)
        assert removal.is_alive()
        here = {"session_id": session.id, "round": 9, "attempt": 1, "slot": A}
        transaction.add(Task(**here, digest=digest))
    removal.join()
    assert service.blobs.has(digest)


@pytest.mark.usefixtures("in_blobs")
def test_a_step_whose_outcome_was_removed_is_run_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = api.open(Dummy(), PARTS).join(turn=False)
    run = worker.run_step

    def run_and_lose(job: worker.Job) -> worker.StepResult:
        followed = run(job)
        for digest in followed.payloads:
            api.service.blobs.remove(digest)
        return followed

    with monkeypatch.context() as context:
        context.setattr(worker, "run_step", run_and_lose)
        api.turn()
    assert "FileNotFoundError" in caplog.text
    assert session.status["state"] == "stepping"
    api.clock.forward(60)
    api.turn()
    assert session.status["state"] == "collecting"
    assert session.finish().status["state"] == "completed"


@pytest.mark.usefixtures("in_blobs")
def test_a_task_that_was_just_removed_is_not_there(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    task = session.task(A).content
    api.service.blobs.remove(sha256(task).hexdigest())
    assert session.task(A).status_code == 404


def test_tokens_go_with_their_session(api: Api) -> None:
    session, other = (api.open(Dummy(), PARTS).join() for _ in range(2))

    def listed() -> set[str | None]:
        tokens = api.service.database.query(list_tokens)
        return {token.session_id for token in tokens}

    assert listed() == {session.id, other.id}
    api.send("DELETE", session.path, session.key)
    assert listed() == {other.id}
    api.clock.forward(86_399)
    sweep(api.service)
    asked = f"{session.path}/task", session.tokens[A]
    assert api.send("GET", *asked).status_code == 410  # it reads why
    api.clock.forward(1)
    sweep(api.service)
    assert api.send("GET", *asked).status_code == 401
    assert column(api, Credential.id, session) == set()
    assert len(column(api, Credential.id, other)) == 2


DAY = 86_400


@pytest.mark.parametrize(
    ("setting", "promised", "kept"),
    [
        (None, 7 * DAY, 7 * DAY),
        (30 * DAY, 7 * DAY, 7 * DAY),
        (7 * DAY, 30 * DAY, 7 * DAY),
        (30 * DAY, None, 30 * DAY),
    ],
)
@pytest.mark.quick(2)
def test_a_session_is_deleted_by_the_shorter_of_terms_and_settings(
    start_api: StartApi, setting: int | None, promised: int | None, kept: int
) -> None:
    terms = None if promised is None else {"session": promised}
    with start_api(delete_seconds=setting) as api:
        session = api.open(Dummy(), PARTS, retention=terms).join().finish()
        api.clock.forward(kept - 1)
        sweep(api.service)
        assert session.status["state"] == "completed"
        api.clock.forward(1)
        sweep(api.service)
        assert api.send("GET", session.path, session.key).status_code == 410


def test_what_neither_terms_nor_settings_limit_stays(api: Api) -> None:
    stays = api.open(Dummy(), PARTS).join().finish()
    goes = api.open(Dummy(), PARTS, retention={"session": DAY})
    goes = goes.join().finish()
    api.clock.forward(60 * DAY)
    sweep(api.service)
    assert stays.status["state"] == "completed"
    assert api.send("GET", goes.path, goes.key).status_code == 410


def test_contributions_go_by_the_shorter_of_terms_and_settings(
    start_api: StartApi,
) -> None:
    with start_api(retention_seconds=3_600) as api:
        by_terms = api.open(Dummy(), PARTS, retention={"session": DAY})
        by_terms = by_terms.join().finish()
        by_settings = api.open(Dummy(), PARTS).join().finish()
        sweep(api.service)
        assert column(api, Task.digest, by_terms) == set()
        before = api.stored()
        api.clock.forward(3_599)
        sweep(api.service)
        assert api.stored() == before
        api.clock.forward(1)
        sweep(api.service)
        assert column(api, Task.digest, by_settings) == set()
