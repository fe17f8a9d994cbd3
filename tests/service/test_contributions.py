"""Uploads: which are stored, and which must be refused."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import product
from threading import Barrier
from typing import Any

import httpx
import numpy as np
import pytest
from support import raw_packets
from support.databases import each_on_a_database
from support.in_process import Api, ByHand

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.terms.signed_logs import check_receipt
from clustering_protocols.wire.answers import Receipt
from party_sdk.analyst_client.requests import bearer_header, contribution_headers
from tests.service.raw_requests import GONE, start
from tests.service.samples import PARTS, A, B, problem_of


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An upload's request, split into the parts that tests change."""

    session: ByHand
    token: str | None
    path: str
    body: bytes
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, session: ByHand, slot: str) -> Upload:
        body = session.reply(slot)
        return cls(
            session=session,
            token=session.tokens[slot],
            path=session.place(body),
            body=body,
            headers=contribution_headers(body),
        )

    def send(self) -> httpx.Response:
        body = self.body if self.pieces is None else iter(self.pieces)
        return self.session.api.send(
            "PUT", self.path, self.token, self.headers, content=body
        )

    def carrying(self, body: bytes) -> Upload:
        return replace(self, body=body, headers=contribution_headers(body))

    def saying(self, **headers: str | None) -> Upload:
        named = {name.replace("_", "-").title(): text for name, text in headers.items()}
        merged = {**self.headers, **named}
        return replace(self, headers={k: v for k, v in merged.items() if v is not None})

    def of_round(self, round_: int | str, attempt: int | str = 1) -> Upload:
        start, _, _ = self.path.partition("/rounds/")
        ending = f"/rounds/{round_}/attempts/{attempt}/contribution"
        return replace(self, path=start + ending)


@pytest.fixture
def session(shared_api: Api) -> ByHand:
    """A dummy session in its count round, which asks for one array of int64."""
    return shared_api.open(Dummy(), PARTS).join().until("count")


@pytest.fixture
def upload(session: ByHand) -> Upload:
    return Upload.of(session, A)


@pytest.fixture(scope="module")
def refused_upload(shared_api: Api) -> Iterator[Upload]:
    """An upload that all refused ones are derived from; it is accepted after them."""
    upload = Upload.of(shared_api.open(Dummy(), PARTS).join().until("count"), A)
    yield upload
    assert upload.send().status_code == 201


def positions(upload: Upload) -> Any:
    return raw_packets.decode(upload.body)[1]["positions"]


def without_positions(upload: Upload) -> dict[str, Any]:
    _, found = raw_packets.decode(upload.body)
    return {name: array for name, array in found.items() if name != "positions"}


def recoded(
    upload: Upload,
    arrays: Mapping[str, Any] | None = None,
    change: Callable[[dict[str, Any]], object] = lambda _: None,
) -> Upload:
    header, found = raw_packets.decode(upload.body)
    header = json.loads(json.dumps(header))
    change(header)
    return upload.carrying(
        raw_packets.encode(header, found if arrays is None else arrays)
    )


Change = Callable[[Upload], Upload]


def addressed(**address: Any) -> Change:
    return lambda u: recoded(u, change=lambda header: header["address"].update(address))


def recorded(**record: Any) -> Change:
    return lambda u: recoded(u, change=lambda header: header["record"].update(record))


def enveloped(**label: Any) -> Change:
    return lambda u: recoded(
        u, change=lambda header: header["envelopes"][0].update(label)
    )


def arrayed(make: Callable[..., Mapping[str, Any]]) -> Change:
    return lambda upload: recoded(
        upload, {**without_positions(upload), **make(positions(upload))}
    )


def assert_refused(
    api: Api, send: Callable[[], httpx.Response], problem: Problem
) -> httpx.Response:
    """Assert that a request is refused with this problem and changes nothing."""
    before = api.stored()
    response = send()
    assert problem_of(response) is problem
    assert api.stored() == before
    return response


def test_a_receipt_names_what_was_stored(session: ByHand, upload: Upload) -> None:
    receipt = upload.send().json()
    assert receipt == {
        "session": session.id,
        "slot": A,
        "round": 3,
        "attempt": 1,
        "digest": sha256(upload.body).hexdigest(),
        "size": len(upload.body),
        "received_at": "2026-03-01T00:00:00Z",
        **line_of(session, upload),
        "signature": receipt["signature"],
    }
    check_receipt(session.api.service.institution.key, Receipt.model_validate(receipt))


def line_of(session: ByHand, upload: Upload) -> dict[str, Any]:
    """Return a receipt's fields about the upload's line in the audit."""
    lines = session.audit_lines
    digest = sha256(upload.body).hexdigest()
    [number] = [n for n, line in enumerate(lines, 1) if digest in line]
    return {"sequence": number, "entry": hash_chain.digest(lines[number - 1])}


@pytest.mark.threat(36)
def test_of_a_hundred_equal_uploads_at_once_one_is_new(
    session: ByHand, upload: Upload
) -> None:
    together = Barrier(100)

    def send(_: int) -> httpx.Response:
        together.wait()
        return upload.send()

    rows, blobs = session.api.stored()
    with ThreadPoolExecutor(100) as threads:
        responses = list(threads.map(send, range(100)))
    assert sorted(r.status_code for r in responses) == [200] * 99 + [201]
    assert len({r.content for r in responses}) == 1
    rows_after, blobs_after = session.api.stored()
    assert len(rows_after["contributions"]) == len(rows["contributions"]) + 1
    assert blobs_after == blobs, "a short answer lies in its row"


@pytest.mark.threat(37)
def test_of_two_different_uploads_at_once_one_is_stored(
    session: ByHand, upload: Upload
) -> None:
    other = arrayed(lambda found: {"positions": found[::-1]})(upload)
    together = Barrier(2)

    def send(one: Upload) -> httpx.Response:
        together.wait()
        return one.send()

    with ThreadPoolExecutor(2) as threads:
        responses = list(threads.map(send, [upload, other]))
    won, lost = sorted(responses, key=lambda response: response.status_code)
    assert won.status_code == 201
    assert problem_of(lost) is Problem.CONTRIBUTION_DIFFERS
    stored = session.api.stored()
    assert sorted(one.send().status_code for one in (upload, other)) == [200, 409]
    assert session.api.stored() == stored


BY_PROBLEM: dict[Problem, dict[str, Change]] = {
    Problem.MALFORMED: {
        "a message of another kind": recorded(kind="greeted"),
        "a message of another round of the stage": lambda u: recoded(
            recorded(kind="confirmed", values={"total": 1})(u), without_positions(u)
        ),
        "a pickle": lambda u: u.carrying(pickle.dumps(Armed())),
        "a header without an address": lambda u: recoded(
            u, change=lambda header: header.pop("address")
        ),
        "an envelope to nobody": enveloped(peer="nobody"),
        "an envelope to its sender": enveloped(peer=A),
        "an envelope of another round": enveloped(round=1),
        "an envelope of another attempt": enveloped(attempt=2),
        "an envelope of another stage": enveloped(stage="greeting"),
        "a label without its envelope": lambda u: recoded(
            u, {"positions": positions(u)}
        ),
        "an envelope without its label": lambda u: recoded(
            u, change=lambda header: header["envelopes"].clear()
        ),
        "no Content-Digest": lambda u: u.saying(content_digest=None),
        "a Content-Digest of another algorithm": lambda u: u.saying(
            content_digest=f"sha-512=:{b64(bytes(64))}:"
        ),
        "a Content-Digest that is not base64": lambda u: u.saying(
            content_digest="sha-256=:no:"
        ),
        "a body shorter than its length": lambda u: replace(
            u.saying(content_length=str(len(u.body))), pieces=(u.body[:-1],)
        ),
        "a body longer than its length": lambda u: replace(
            u.saying(content_length=str(len(u.body) - 1)),
            pieces=(u.body[:7], u.body[7:]),
        ),
    },
    Problem.INVALID_ARRAY: {
        "one item more": arrayed(lambda found: {"positions": np.append(found, 0)}),
    },
    Problem.AGREEMENT_MISMATCH: {
        "the bytes of another session": addressed(session="another"),
        "the bytes of another agreement": addressed(agreement="0" * 64),
        "the bytes of another stage": addressed(stage="greeting"),
        "the bytes of another slot": addressed(slot=B),
        "another party's token": lambda u: replace(u, token=u.session.tokens[B]),
    },
    Problem.VERSION_MISMATCH: {"a newer version of the message": recorded(version=2)},
    Problem.ROUND_CLOSED: {
        "bytes that name another round than the path": addressed(round=1),
        "bytes that name another attempt than the path": addressed(attempt=2),
        "a round that is not open yet": lambda u: u.of_round(4),
        "an attempt that is not open": lambda u: u.of_round(3, 2),
    },
    Problem.INVALID_PARAMETERS: {
        "round 0": lambda u: u.of_round(0),
        "a round that is no number": lambda u: u.of_round("one"),
        "a round too large to keep": lambda u: u.of_round(2**31),
    },
    Problem.CONTRIBUTION_DIFFERS: {"an earlier round": lambda u: u.of_round(1)},
    Problem.DIGEST_MISMATCH: {
        "the digest of other bytes": lambda u: u.saying(
            content_digest=f"sha-256=:{b64(bytes(32))}:"
        )
    },
    Problem.LENGTH_REQUIRED: {
        "no Content-Length": lambda u: replace(u, pieces=(u.body,)),
        "a negative length": lambda u: u.saying(content_length="-1"),
    },
    Problem.TOO_LARGE: {
        "a body over the limit": lambda u: u.carrying(bytes((1 << 16) + 1)),
        "a length of 2^63": lambda u: u.saying(content_length=str(1 << 63)),
    },
    Problem.UNSUPPORTED_MEDIA: {
        "a compressed body": lambda u: u.saying(content_encoding="gzip"),
        "a body compressed by zstd": lambda u: u.saying(content_encoding="zstd"),
        "a form": lambda u: u.saying(content_type="multipart/form-data"),
        "no Content-Type": lambda u: u.saying(content_type=None),
        "JSON": lambda u: u.saying(content_type="application/json"),
    },
}
REFUSED: dict[str, tuple[Change, Problem]] = {
    name: (change, problem)
    for problem, changes in BY_PROBLEM.items()
    for name, change in changes.items()
}


class Armed:
    """An object that fails the test when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return pytest.fail, ("somebody unpickled what came",)


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.thorough
@pytest.mark.threat(4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 38, 39)
@each_on_a_database("what", list(REFUSED), "shared_api")
def test_a_bad_upload_is_refused_and_leaves_no_trace(
    refused_upload: Upload, what: str
) -> None:
    change, problem = REFUSED[what]
    bad = change(refused_upload)
    assert_refused(refused_upload.session.api, bad.send, problem)


@pytest.mark.threat(8)
def test_an_upload_whose_connection_ends_leaves_no_trace(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    api = upload.session.api
    headers = {**upload.headers, "content-length": str(len(upload.body))}
    pieces = [upload.body[:9], GONE]
    before = api.stored()
    sent = start(api, "PUT", upload.path, pieces, secret=upload.token, **headers)
    assert not sent.result(60).pieces
    assert api.stored() == before
    assert not caplog.records, "a lost connection is no error of the service"
    assert upload.send().status_code == 201


@pytest.mark.threat(1, 2, 4)
def test_numbers_that_are_not_finite_are_refused_and_others_are_taken(
    file_api: Api,
) -> None:
    session = file_api.open(DataCollaboration(n_clusters=2), PARTS).join()
    session.until("upload")
    upload = Upload.of(session, A)
    _, arrays = raw_packets.decode(upload.body)
    for name, (place, bad) in product(
        ("rows", "anchors"), [(0.0, np.nan), (0.5, np.inf), (1.0, -np.inf)]
    ):
        spoilt = arrays[name].copy()
        spoilt.flat[int(place * (spoilt.size - 1))] = bad
        send = recoded(upload, {**arrays, name: spoilt}).send
        refusal = assert_refused(file_api, send, Problem.INVALID_ARRAY)
        assert "1 items" in refusal.json()["detail"]
    narrow = {**arrays, "anchors": arrays["anchors"][:, 1:]}  # rows have one more
    assert_refused(file_api, recoded(upload, narrow).send, Problem.INVALID_ARRAY)
    fine = arrays["rows"].copy()
    fine.flat[:4] = -0.0, 5e-324, 2.0**-1060, 1e308
    assert recoded(upload, {**arrays, "rows": fine}).send().status_code == 201


def test_a_wrong_signature_is_not_stored(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS).join()
    upload = Upload.of(session, A)
    wrong = recorded(values={"signature": "0" * 128})(upload)
    refusal = assert_refused(file_api, wrong.send, Problem.SIGNATURE_REFUSED)
    assert f"'{A}'" in refusal.json()["detail"]
    assert upload.send().status_code == 201, "the right one is still welcome"


BAD_JSON: dict[str, tuple[bytes | dict[str, Any], Problem]] = {
    "no JSON": (b"{", Problem.MALFORMED),
    "text that is not UTF-8": (b'{"code": "\xff"}', Problem.MALFORMED),
    "an empty body": (b"", Problem.INVALID_PARAMETERS),
    "a list": (b"[]", Problem.MALFORMED),
    "a number of 5000 digits": (b'{"code": %s}' % (b"1" * 5000), Problem.MALFORMED),
    "1000 objects in each other": (b'{"code":' * 1000 + b"}" * 1000, Problem.MALFORMED),
    "a name twice": (b'{"code":"0123456789abcdef","code":"x"}', Problem.MALFORMED),
    "a name twice in a part": (
        b'{"member":{"slot":"a","slot":"b"}}',
        Problem.MALFORMED,
    ),
    "a number that JSON lacks": (b'{"member":{"n_rows":NaN}}', Problem.MALFORMED),
    "a number without end": (b'{"member":{"n_rows":1e999}}', Problem.MALFORMED),
    "a surplus field": ({"surprise": 1}, Problem.INVALID_PARAMETERS),
    "no rows": ({"member": {"n_rows": 0}}, Problem.INVALID_PARAMETERS),
    "rows below zero": ({"member": {"n_rows": -1}}, Problem.INVALID_PARAMETERS),
    "half a row": ({"member": {"n_rows": 1.5}}, Problem.INVALID_PARAMETERS),
    "rows as a text": ({"member": {"n_rows": "many"}}, Problem.INVALID_PARAMETERS),
    "rows without end": ({"member": {"n_rows": 2**40}}, Problem.INVALID_PARAMETERS),
    "keys that are none": ({"member": {"keys": {}}}, Problem.INVALID_PARAMETERS),
    "a mark that is none": ({"member": {"mark": "x"}}, Problem.INVALID_PARAMETERS),
    "an unknown code": ({"code": "x" * 32}, Problem.NOT_FOUND),
    "a code of NULs": ({"code": "\0" * 32}, Problem.NOT_FOUND),
}


@pytest.mark.threat(3, 19)
def test_a_bad_join_is_refused_and_leaves_no_trace(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    headers = {"Content-Type": "application/json"}
    for given, problem in BAD_JSON.values():
        content = given
        if isinstance(given, dict):
            body = session.joining(A)
            member = body["member"] | given.get("member", {})
            content = json.dumps(body | {**given, "member": member}).encode()
        send = partial(
            file_api.send, "POST", "/v1/join", content=content, headers=headers
        )
        assert_refused(file_api, send, problem)
    assert session.try_join(A).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/json"},
        {"Content-Type": codec.MEDIA_TYPE},
        {},
        {"Content-Type": "application/json", "Content-Length": str(1 << 21)},
    ],
    ids=["JSON in pieces", "as if it were arrays", "untyped", "announced"],
)
def test_a_body_over_the_limit_of_json_is_not_read_to_its_end(
    file_api: Api, headers: dict[str, str]
) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(32):
            sent += 1 << 16
            yield b" " * (1 << 16)

    whole = {**headers, **bearer_header(file_api.key())}
    send = partial(
        file_api.send, "PUT", "/v1/sessions/s", headers=whole, content=pieces()
    )
    assert_refused(file_api, send, Problem.TOO_LARGE)
    assert sent <= (1 << 20) + (1 << 16)
