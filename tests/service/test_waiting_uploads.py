"""An upload that waits for the next task: one request for each round."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from support.analyst_process import wait_for

from analyst_service.jobs.driver import POLL_SECONDS
from clustering_protocols import simulation
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import (
    RECEIPT_HEADER,
    receipt_in,
    wait_seconds,
)
from party_sdk.analyst_client import requests

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


def put(session: ByHand, slot: str, content: bytes, prefer: str) -> httpx.Response:
    headers = {**requests.contribution_headers(content), "Prefer": prefer}
    return session.api.send(
        "PUT",
        session.place(content),
        session.tokens[slot],
        headers,
        content=content,
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
    assert packets.read(answer.content).address.round == 2
    assert answer.content == session.task(B).content, "the same bytes as GET"
    again = put(session, B, content, "wait=0")
    assert again.status_code == 200
    assert receipt_of(again) == receipt_of(answer)
    plain = session.put(B, content)
    assert Receipt.model_validate_json(plain.content) == receipt_of(answer)


def test_who_has_to_wait_too_long_gets_the_receipt_alone(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    answer = put(session, A, session.reply(A), "respond-async, wait=0")
    assert (answer.status_code, answer.content) == (204, b"")
    assert receipt_of(answer).slot == A


def test_a_waiting_upload_gets_its_receipt_when_a_process_ends(
    api: Api,
) -> None:
    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)
    with ThreadPoolExecutor() as pool:
        held = pool.submit(put, session, A, content, "wait=25")
        wait_for(lambda: api.service.notifier.waited_for)
        api.service.drain()
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
    api.send("POST", f"{session.path}/cancel", session.key)
    again = put(session, A, content, "wait=5")
    assert again.status_code == 204
    assert receipt_of(again).slot == A


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("wait=20", 20),
        ("respond-async, wait=5", 5),
        ('wait="7"; x=1', 7),
        ("Wait = 3", 3),
        ("", None),
        ("wait", None),
        ("wait=soon", None),
        ("wait=-1", None),
        ("await=3", None),
    ],
)
def test_preferences_are_read_as_they_are_written(
    prefer: str, seconds: int | None
) -> None:
    assert wait_seconds(prefer) == seconds


def test_what_is_no_receipt_in_a_header_is_none() -> None:
    for text in ("", "plain", ":%%%:", ":abc:", "abc"):
        assert receipt_in({RECEIPT_HEADER: text}) is None
