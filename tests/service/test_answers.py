"""Simultaneous requests share transactions, and an upload may wait for the next task."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

import httpx
import pytest
import sqlalchemy as sa
from support.analyst_process import wait_for
from support.in_process import Api, ByHand

from analyst_service import contribution_endpoints as endpoints
from analyst_service.blobs import FileDraft
from analyst_service.contributions import OpenTask, Upload, record_first_sending
from analyst_service.credentials import CredentialRefused, authenticate
from analyst_service.driver import POLL_SECONDS
from analyst_service.models import Contribution
from analyst_service.waiting import Batcher
from clustering_protocols.common.errors import (
    ContributionDiffers,
    NotFound,
    RoundClosed,
    StorageFull,
)
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import (
    RECEIPT_HEADER,
    parse_wait_preference,
    receipt_in,
)
from party_sdk.analyst_client import requests
from tests.service.samples import PARTS, A, B

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new thread: this thread may have an event loop, of a browser."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def test_what_comes_while_others_are_served_is_done_in_one_go() -> None:
    goes: list[list[int]] = []
    is_begun, may_end = threading.Event(), threading.Event()

    def double(items: Sequence[int]) -> list[int | Exception]:
        goes.append(list(items))
        is_begun.set()
        may_end.wait(10)
        return [2 * item for item in items]

    async def all_of_them() -> list[int]:
        calls = Batcher()
        first = asyncio.create_task(calls.submit(double, 0))
        await asyncio.to_thread(is_begun.wait, 10)
        others = [asyncio.create_task(calls.submit(double, n)) for n in range(1, 251)]
        await asyncio.sleep(0)
        may_end.set()
        return list(await asyncio.gather(first, *others))

    assert run(all_of_them()) == [2 * n for n in range(251)]
    assert [len(go) for go in goes] == [1, 100, 100, 50]


def test_what_goes_wrong_is_told_to_all_and_who_stays_is_served() -> None:
    is_away, may_end = True, threading.Event()

    def work(items: Sequence[int]) -> list[int | Exception]:
        if is_away:
            raise OSError("away")
        may_end.wait(10)
        return list(items)

    async def again() -> int:
        nonlocal is_away
        calls = Batcher()
        for _ in range(2):
            with pytest.raises(OSError, match="away"):
                await calls.submit(work, 1)
        is_away = False
        gone = asyncio.create_task(calls.submit(work, 1))
        stays = asyncio.create_task(calls.submit(work, 2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        may_end.set()
        return await stays

    assert run(again()) == 2


@pytest.fixture
def session(api: Api) -> ByHand:
    return api.open(Dummy(), PARTS).join()


def arrived(session: ByHand, slot: str, content: bytes) -> Upload:
    draft = session.api.service.blobs.create_draft()
    draft.write(content)
    digest, here = draft.seal(), packets.parse(content).address
    where = here.session, here.round, here.attempt
    caller = session.api.caller(session.tokens[slot])
    return Upload(caller, *where, digest, draft.size, draft=draft)


def events(session: ByHand) -> Counter[str]:
    return Counter(entry["event"] for entry in session.audit)


class Refused(FileDraft):
    """A draft of a refused contribution, which must not be stored."""

    def __init__(self) -> None:
        pass

    def store_as_blob(self) -> NoReturn:
        raise AssertionError("nothing of a refused answer is kept")


class Full(Refused):
    def store_as_blob(self) -> NoReturn:
        raise StorageFull("there is no room")


def test_of_answers_that_come_together_each_gets_its_own_outcome(
    session: ByHand,
) -> None:
    contents = {slot: session.reply(slot) for slot in (A, B)}
    one, two = (arrived(session, slot, contents[slot]) for slot in (A, B))
    stranger = replace(two.caller, credential_id="revoked")
    late = replace(two, round=7, draft=Refused())
    elsewhere = replace(two, session="another", draft=Refused())
    found = endpoints._check_and_store(
        session.api.service,
        [
            replace(two, caller=stranger, draft=Refused()),
            one,
            elsewhere,
            replace(one, draft=Refused()),
            replace(one, digest="0" * 64, draft=Refused()),
            late,
            replace(two, draft=Full()),
        ],
    )
    assert [type(each) for each in found] == [
        CredentialRefused,
        tuple,
        NotFound,
        tuple,
        ContributionDiffers,
        RoundClosed,
        StorageFull,
    ]
    stored, again = found[1], found[3]
    assert isinstance(stored, tuple)
    assert isinstance(stored[0], Contribution)
    assert again == (stored[0], False)
    assert stored[1], "the first of the same bytes is new"
    assert session.put(A, contents[A]).json()["entry"] == stored[0].entry
    assert events(session)["contribution"] == 1
    later = endpoints._check_and_store(session.api.service, [two])
    assert isinstance(later[0], tuple), "what was refused for want of room may come"


def test_tasks_are_handed_out_together_and_noted_once(session: ByHand) -> None:
    service, name = session.api.service, session.path.rpartition("/")[2]
    asking = [(session.api.caller(session.tokens[slot]), name) for slot in (A, B)]
    caller = asking[0][0]
    revoked = replace(caller, credential_id="revoked"), name
    asked = [*asking, revoked, (caller, "another"), asking[0]]
    found = endpoints.fetch_open_tasks(service, asked)
    assert [type(each) for each in found] == [
        OpenTask,
        OpenTask,
        CredentialRefused,
        NotFound,
        OpenTask,
    ]
    endpoints.fetch_open_tasks(service, asked)
    twice = [task for task in found if isinstance(task, OpenTask)]
    service.database.transact(record_first_sending, twice)  # as another process may
    assert events(session)["task-sent"] == 2
    session.put(A, session.reply(A))
    assert endpoints.fetch_open_tasks(service, asking)[0] is None


@pytest.mark.parametrize("are_short", [False, True])
def test_simultaneous_uploads_share_one_query_and_one_lock(
    session: ByHand, *, are_short: bool
) -> None:
    service = session.api.service
    asked: list[str] = []
    sa.event.listen(
        service.database.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_: asked.append(statement),
    )
    shown = [f"Bearer {session.tokens[A]}", "Bearer x", f"Bearer {session.tokens[B]}"]
    found = service.database.query(authenticate, [*shown, "", None])
    assert [getattr(each, "slot", None) for each in found] == [A, None, B, None, None]
    assert sum("credentials" in statement for statement in asked) == 1
    contents = [session.reply(slot) for slot in (A, B)]
    both = [arrived(session, *sent) for sent in zip((A, B), contents, strict=True)]
    if are_short:
        short = zip(both, contents, strict=True)
        both = [replace(upload, content=sent, draft=None) for upload, sent in short]
    asked.clear()
    stored = endpoints._check_and_store(service, both)
    assert [is_new for _, is_new in stored] == [True, True]  # type: ignore[misc]  # no refusal
    assert len(asked) <= 8, asked


def test_an_answer_to_a_task_in_a_blob_is_checked_outside_the_transaction(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyst_service.worker.ROW_BYTES", 0)
    session = api.open(Dummy(), PARTS).join()
    database, checks = api.service.database, []
    transact, check = database.transact, endpoints.check_contribution

    def mark(work: Callable[..., T], *given: Any) -> T:
        checks.append("begin")
        result = transact(work, *given)
        checks.append("end")
        return result

    def note(*given: Any) -> None:
        checks.append("check")
        check(*given)

    content = session.reply(A)
    monkeypatch.setattr(database, "transact", mark)
    monkeypatch.setattr(endpoints, "check_contribution", note)
    assert session.put(A, content).status_code == 201
    assert checks[-3:] == ["check", "begin", "end"]
    assert session.put(A, content).status_code == 200
    lie, headers = b"no arrays", requests.contribution_headers(b"no arrays")
    place, token = session.place(content), session.tokens[B]
    refused = session.api.send("PUT", place, token, headers, content=lie)
    assert refused.status_code == 400
    assert checks[-3:] == ["begin", "end", "check"], "nothing was stored"


def put(session: ByHand, slot: str, content: bytes, prefer: str) -> httpx.Response:
    headers = {**requests.contribution_headers(content), "Prefer": prefer}
    return session.api.send(
        "PUT", session.place(content), session.tokens[slot], headers, content=content
    )


def receipt_of(response: httpx.Response) -> Receipt:
    return Receipt.model_validate_json(receipt_in(response.headers) or b"")


def test_who_answers_last_gets_the_next_task_with_the_receipt(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    first = session.put(A, session.reply(A))
    assert first.status_code == 201
    content = session.reply(B)
    api.driver.__enter__()  # steps as soon as it is told
    try:
        answer = put(session, B, content, "wait=10")
    finally:
        api.driver.__exit__()
    assert answer.status_code == 201
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.headers["preference-applied"] == "wait"
    assert packets.parse(answer.content).address.round == 2
    assert answer.content == session.task(B).content, "the same bytes as GET"
    again = put(session, B, content, "wait=0")
    assert again.status_code == 200
    assert receipt_of(again) == receipt_of(answer)
    plain = session.put(B, content)
    assert Receipt.model_validate_json(plain.content) == receipt_of(answer)


def test_a_waiting_upload_gets_its_receipt_when_a_process_ends(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    with ThreadPoolExecutor() as pool:
        held = pool.submit(put, session, A, content, "wait=25")
        wait_for(lambda: api.service.notifier.awaited_sessions)
        api.service.start_draining()
        answer = held.result(10)
    assert answer.status_code == 204
    assert receipt_of(answer).slot == A
    refusal = api.send("GET", "/readyz")
    assert refusal.status_code == 503
    again = session.api.send("GET", f"{session.path}/task?wait=25", session.tokens[A])
    assert again.status_code == 204
    session.put(B, session.reply(B))
    api.driver.__enter__()
    time.sleep(5 * POLL_SECONDS)
    api.driver.__exit__()
    assert session.status["round"] == 1, "the step is for another process"


def test_the_receipt_is_due_whatever_becomes_of_the_session(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    assert put(session, A, content, "wait=0").status_code == 204
    session.cancel()
    again = put(session, A, content, "wait=5")
    assert again.status_code == 204
    assert receipt_of(again).slot == A


def test_headers_of_waiting_and_of_receipts_are_read_as_they_are_written() -> None:
    asked = {
        "wait=20": 20,
        "respond-async, wait=5": 5,
        'wait="7"; x=1': 7,
        "Wait = 3": 3,
    }
    nothing = ("", "wait", "wait=soon", "wait=-1", "await=3")
    for prefer, seconds in [*asked.items(), *((text, None) for text in nothing)]:
        assert parse_wait_preference(prefer) == seconds
    for text in ("", "plain", ":%%%:", ":abc:", "abc"):
        assert receipt_in({RECEIPT_HEADER: text}) is None
