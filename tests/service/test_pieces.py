"""A contribution in pieces: what is put together, and everything that must not be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from support.databases import Databases
from support.in_process import in_process

from analyst_service.blobs.files import FileDraft
from analyst_service.contributions.repository import SlotAttempt
from analyst_service.resumable_uploads import uploads
from analyst_service.resumable_uploads.service import PieceService
from analyst_service.retention.service import RetentionService
from analyst_service.retention.worker import Sweeper
from analyst_service.storage.models import PartialUpload
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.signed_logs import check_receipt
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import Receipt
from coterie_http.resumption import MAX_PIECES, least_piece
from party_sdk.analyst_client.requests import content_digest

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names
PIECE = 100


@dataclass(frozen=True)
class Pieces:
    """One contribution of one party, as a client of any language would send it."""

    session: ByHand
    content: bytes
    slot: str = A

    @classmethod
    def of(cls, api: Api) -> Pieces:
        session = api.open(Dummy(), PARTS).join()
        return cls(session, session.reply(A))

    @property
    def path(self) -> str:
        return f"{self.session.place(self.content)}/upload"

    @property
    def size(self) -> int:
        return len(self.content)

    def send(self, method: str, api: Api | None = None, **more: Any) -> httpx.Response:
        token = self.session.tokens[self.slot]
        return (api or self.session.api).send(method, self.path, token, **more)

    def begin(
        self, api: Api | None = None, digest: str = "", size: int | None = None
    ) -> httpx.Response:
        headers = {
            "Upload-Complete": "?0",
            "Upload-Length": str(self.size if size is None else size),
            "Repr-Digest": digest or content_digest(self.content),
        }
        return self.send("PUT", api, headers=headers)

    def patch(
        self,
        offset: int,
        piece: bytes,
        *,
        last: bool = False,
        api: Api | None = None,
        **changed: str,
    ) -> httpx.Response:
        headers = {
            "Content-Type": "application/partial-upload",
            "Content-Digest": content_digest(piece),
            "Upload-Offset": str(offset),
            "Upload-Complete": "?1" if last else "?0",
        }
        headers |= {name.replace("_", "-"): text for name, text in changed.items()}
        return self.send("PATCH", api, headers=headers, content=piece)

    def fill(self) -> None:
        """Send all pieces, but do not seal them."""
        assert self.begin().status_code == 201
        for offset in range(0, self.size, PIECE):
            answer = self.patch(offset, self.content[offset : offset + PIECE])
            assert answer.status_code == 204, answer.text

    def seal(self, api: Api | None = None, **changed: str) -> httpx.Response:
        return self.patch(self.size, b"", last=True, api=api, **changed)

    def offset(self, api: Api | None = None) -> int:
        return int(self.send("HEAD", api).headers["upload-offset"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One whose clock is moved."""
    folder = tmp_path_factory.mktemp("alone")
    limits = {"upload_seconds": 10**4, "max_body_bytes": 1 << 16, "lease_seconds": 0.5}
    with in_process(folder, **limits) as running:
        yield running


@pytest.fixture
def sole(alone: Api) -> Pieces:
    return Pieces.of(alone)


@pytest.fixture
def upload(shared_api: Api) -> Pieces:
    return Pieces.of(shared_api)


@pytest.fixture
def begun(sole: Pieces) -> Pieces:
    """An upload of which two pieces have come."""
    assert sole.begin().status_code == 201
    for offset in (0, PIECE):
        sole.patch(offset, sole.content[offset : offset + PIECE])
    return sole


def is_problem(answer: httpx.Response, problem: Problem) -> bool:
    return (answer.status_code, answer.json()["type"]) == (problem.status, problem.urn)


def sweep(api: Api) -> None:
    Sweeper(api.service).turn()


def left_of(upload: Pieces) -> int:
    """How many rows of uploads and pieces there are of its round."""
    stored = upload.session.api.stored()[0]
    place = internal_id(upload)
    found = stored["partial_uploads"] + stored["upload_pieces"]
    return sum(place in row for row in found)


def internal_id(upload: Pieces) -> str:
    [found] = {
        row[0]
        for row in upload.session.api.stored()[0]["sessions"]
        if upload.session.id in row
    }
    return str(found)


# What is put together


def test_pieces_become_the_contribution_that_one_body_would_be(
    shared_api: Api,
) -> None:
    """Receipt, row and line of the audit are those of one PUT, but for time and place."""
    pieced, whole = Pieces.of(shared_api), Pieces.of(shared_api)
    pieced.fill()
    sealed = pieced.seal()
    put = whole.session.put(A, whole.content)
    assert (sealed.status_code, put.status_code) == (201, 201)
    receipt, usual = sealed.json(), put.json()
    check_receipt(shared_api.service.institution.key, Receipt.model_validate(receipt))
    assert receipt["digest"] == sha256(pieced.content).hexdigest()
    assert receipt.keys() == usual.keys()
    same = ("slot", "round", "attempt", "size", "sequence")
    assert [receipt[name] for name in same] == [usual[name] for name in same]
    lines = [
        shared_api.send("GET", f"{s.path}/audit", s.key).json()["lines"]
        for s in (pieced.session, whole.session)
    ]
    assert len(lines[0]) == len(lines[1])
    assert receipt["digest"] in lines[0][receipt["sequence"] - 1]
    # and the round continues with it, to the end
    pieced.session.answer(B)
    assert pieced.session.finish().status["state"] == "completed"


@pytest.mark.threat(36)
def test_whatever_is_sent_again_gets_the_same_answer(upload: Pieces) -> None:
    upload.fill()
    first = upload.content[:PIECE]
    assert upload.begin().headers["upload-offset"] == str(upload.size)
    assert upload.patch(0, first).headers["upload-offset"] == str(upload.size)
    sealed = upload.seal()
    again = upload.seal()
    assert (sealed.status_code, again.status_code) == (201, 200)
    assert sealed.content == again.content
    assert upload.session.put(A, upload.content).content == sealed.content
    begun = upload.begin()
    assert begun.headers["upload-complete"] == "?1"
    assert begun.headers["upload-offset"] == str(upload.size)


def test_who_lost_its_place_is_told_it(sole: Pieces) -> None:
    assert sole.send("HEAD").status_code == 404
    begun = sole.begin()
    assert begun.headers["location"] == sole.path
    assert "max-append-size=67108864" in begun.headers["upload-limit"]
    sole.patch(0, sole.content[:PIECE])
    found = sole.send("HEAD")
    assert found.status_code == 204
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["upload-offset"] == str(PIECE)
    assert found.headers["upload-complete"] == "?0"
    assert found.headers["upload-length"] == str(sole.size)
    assert found.headers["repr-digest"] == content_digest(sole.content)


def test_the_last_piece_may_have_bytes_and_await_the_next_task(
    sole: Pieces,
) -> None:
    sole.begin()
    sole.patch(0, sole.content[:PIECE])
    last = {"last": True, "Prefer": "wait=0"}
    sealed = sole.patch(PIECE, sole.content[PIECE:], **last)
    again = sole.patch(PIECE, sole.content[PIECE:], **last)
    assert (sealed.status_code, again.status_code) == (204, 204)
    assert sealed.headers["coterie-receipt"] == again.headers["coterie-receipt"]


def test_a_piece_that_is_cut_leaves_nothing(sole: Pieces) -> None:
    sole.begin()
    before = sole.session.api.stored()
    cut = sole.patch(0, sole.content[:PIECE], Content_Length=str(PIECE + 1))
    assert is_problem(cut, Problem.MALFORMED)
    assert sole.session.api.stored() == before
    assert sole.offset() == 0


@pytest.mark.postgres
def test_another_analyst_goes_on_where_one_was_killed(
    databases: Databases, tmp_path: Path
) -> None:
    """Two without a common disk, over one PostgreSQL and one store."""
    (tmp_path / "objects").mkdir()
    shared = {
        "blob_store": (tmp_path / "objects").as_uri(),
        "identity_file": tmp_path / "identity.json",
    }
    with (
        databases.current("postgresql", tmp_path) as url,
        in_process(tmp_path / "second", url, **shared) as second,
    ):
        with in_process(tmp_path / "first", url, **shared) as first:
            upload = Pieces.of(first)
            upload.begin()
            upload.patch(0, upload.content[:PIECE])
            rest = upload.content[PIECE:]
            assert upload.offset(second) == PIECE
            assert upload.patch(PIECE, rest, api=second).status_code == 204
            assert upload.offset(first) == upload.size
        sealed = upload.seal(second)
        assert sealed.status_code == 201
        assert sealed.json()["digest"] == sha256(upload.content).hexdigest()


@pytest.mark.threat(36)
def test_of_the_same_piece_at_once_one_is_stored(upload: Pieces) -> None:
    upload.begin()
    together, piece = Barrier(8), upload.content[:PIECE]

    def send(number: int) -> httpx.Response:
        together.wait()
        return upload.patch(0, piece if number % 2 else piece[::-1])

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8)))
    assert sorted(a.status_code for a in answers) == [204] * 4 + [409] * 4
    assert upload.offset() == PIECE


@pytest.mark.threat(36)
def test_of_many_that_seal_at_once_one_is_new(upload: Pieces) -> None:
    upload.fill()
    together = Barrier(8)

    def seal(_: int) -> httpx.Response:
        together.wait()
        return upload.seal()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(seal, range(8)))
    found = sorted(answer.status_code for answer in answers)
    assert found.count(201) == 1
    assert set(found) <= {200, 201, 503}
    assert upload.seal().status_code == 200


# What is refused


def _later(upload: Pieces, offset: int, length: int = PIECE) -> httpx.Response:
    return upload.patch(offset, upload.content[offset : offset + length])


REFUSED: dict[str, tuple[Callable[[Pieces], httpx.Response], Problem]] = {
    "a gap": (lambda u: _later(u, 3 * PIECE), Problem.OFFSET_MISMATCH),
    "ranges out of order": (
        lambda u: _later(u, 2 * PIECE + 1),
        Problem.OFFSET_MISMATCH,
    ),
    "a range over two": (lambda u: _later(u, 10), Problem.OFFSET_MISMATCH),
    "more from an earlier place": (
        lambda u: _later(u, PIECE, 2 * PIECE),
        Problem.OFFSET_MISMATCH,
    ),
    "other bytes in an earlier place": (
        lambda u: u.patch(0, bytes(PIECE)),
        Problem.OFFSET_MISMATCH,
    ),
    "a place below zero": (lambda u: u.patch(-1, b"x"), Problem.INVALID_PARAMETERS),
    "a place that is no number": (
        lambda u: u.patch(0, b"x", Upload_Offset="0x10"),
        Problem.INVALID_PARAMETERS,
    ),
    "a place beyond 2^63": (
        lambda u: u.patch(1 << 63, b"x"),
        Problem.INVALID_PARAMETERS,
    ),
    "more bytes than were announced": (
        lambda u: u.patch(2 * PIECE, u.content[2 * PIECE :] + b"x"),
        Problem.MALFORMED,
    ),
    "a seal before its end": (
        lambda u: u.patch(2 * PIECE, b"", last=True),
        Problem.MALFORMED,
    ),
    "a seal where the end would be": (lambda u: u.seal(), Problem.OFFSET_MISMATCH),
    "an empty piece": (lambda u: u.patch(2 * PIECE, b""), Problem.MALFORMED),
    "bytes that are not their digest": (
        lambda u: u.patch(2 * PIECE, b"xyz", Content_Digest=content_digest(b"abc")),
        Problem.DIGEST_MISMATCH,
    ),
    "no digest": (
        lambda u: u.patch(2 * PIECE, b"xyz", Content_Digest=""),
        Problem.MALFORMED,
    ),
    "another media type": (
        lambda u: u.patch(2 * PIECE, b"xyz", Content_Type="application/json"),
        Problem.UNSUPPORTED_MEDIA,
    ),
    "a compressed piece": (
        lambda u: u.patch(2 * PIECE, b"xyz", Content_Encoding="gzip"),
        Problem.UNSUPPORTED_MEDIA,
    ),
    "a piece over the limit": (
        lambda u: u.patch(2 * PIECE, b"x", Content_Length=str((64 << 20) + 1)),
        Problem.TOO_LARGE,
    ),
    "an end that is neither yes nor no": (
        lambda u: u.patch(2 * PIECE, b"x", Upload_Complete="true"),
        Problem.INVALID_PARAMETERS,
    ),
    "a second upload of other bytes": (
        lambda u: u.begin(digest=content_digest(b"other")),
        Problem.CONTRIBUTION_DIFFERS,
    ),
    "the same digest of another length": (
        lambda u: u.begin(size=u.size + 1),
        Problem.CONTRIBUTION_DIFFERS,
    ),
    "an upload over the limit": (
        lambda u: u.begin(size=(1 << 16) + 1),
        Problem.TOO_LARGE,
    ),
    "an upload of nothing": (lambda u: u.begin(size=0), Problem.INVALID_PARAMETERS),
    "an upload without a digest": (
        lambda u: u.begin(digest="md5=:xx:"),
        Problem.MALFORMED,
    ),
    "a beginning with bytes": (
        lambda u: u.send(
            "PUT",
            headers={
                "Upload-Complete": "?0",
                "Upload-Length": str(u.size),
                "Repr-Digest": content_digest(u.content),
            },
            content=b"x",
        ),
        Problem.MALFORMED,
    ),
}


@pytest.mark.threat(130)
def test_what_does_not_fit_is_refused_and_changes_nothing(begun: Pieces) -> None:
    before = begun.session.api.stored()
    for what, (attempt, problem) in REFUSED.items():
        refusal = attempt(begun)
        assert is_problem(refusal, problem), (what, refusal.text)
        assert begun.session.api.stored() == before, what
    rest = begun.content[2 * PIECE :]
    assert begun.patch(2 * PIECE, rest, last=True).status_code == 201


@pytest.mark.threat(130)
def test_nobody_goes_on_with_another_party_s_upload(begun: Pieces) -> None:
    """Which slot is meant says the token alone: there is no name to guess."""
    thief = Pieces(begun.session, begun.content, slot=B)
    before = begun.session.api.stored()
    for refusal in (thief.send("HEAD"), _later(thief, 2 * PIECE), thief.seal()):
        assert refusal.status_code == 404
    assert thief.send("DELETE").status_code == 204  # its own: there is none
    assert begun.session.api.stored() == before
    stranger = Pieces.of(begun.session.api)
    token = stranger.session.tokens[A]
    assert begun.session.api.send("HEAD", begun.path, token).status_code == 404


@pytest.mark.threat(130)
def test_ten_thousand_beginnings_are_one_upload(sole: Pieces) -> None:
    """One for each answer of each slot: other rounds are not open, other bytes refused."""
    api = sole.session.api
    assert sole.begin().status_code == 201
    before = api.stored()
    token = sole.session.tokens[A]
    for number in range(1, 10):
        digest = content_digest(f"{number}".encode())
        assert is_problem(sole.begin(digest=digest), Problem.CONTRIBUTION_DIFFERS)
        headers = {"Upload-Complete": "?0", "Upload-Length": "9", "Repr-Digest": digest}
        for place in (
            f"rounds/{number + 1}/attempts/1",
            f"rounds/1/attempts/{number + 1}",
        ):
            path = f"{sole.session.path}/{place}/contribution/upload"
            refusal = api.send("PUT", path, token, headers)
            assert is_problem(refusal, Problem.ROUND_CLOSED)
    assert api.stored() == before


@pytest.mark.threat(130)
def test_an_upload_that_is_not_what_it_said_has_ended(sole: Pieces) -> None:
    """To put it together once more would cost as much again."""
    wrong = content_digest(b"other bytes")
    assert sole.begin(digest=wrong).status_code == 201
    sole.patch(0, sole.content)
    api = sole.session.api
    assert is_problem(sole.seal(), Problem.DIGEST_MISMATCH)
    for refusal in (sole.seal(), sole.begin(digest=wrong), sole.begin()):
        assert is_problem(refusal, Problem.UNAVAILABLE)
    sweep(api)
    assert left_of(sole) == 0
    sole.fill()
    assert sole.seal().status_code == 201


@pytest.mark.threat(130)
def test_pieces_of_a_wrong_contribution_are_refused(
    alone: Api,
) -> None:
    """The checks of a contribution are made over the whole, whatever its pieces were."""
    good = Pieces.of(alone)
    other = Pieces(good.session, good.session.reply(B))  # another slot's answer
    assert other.begin().status_code == 201
    other.patch(0, other.content)
    contributions = alone.stored()[0]["contributions"]
    assert is_problem(other.seal(), Problem.AGREEMENT_MISMATCH)
    assert alone.stored()[0]["contributions"] == contributions
    sweep(alone)


@pytest.mark.threat(130)
def test_pieces_are_not_smaller_than_a_share_of_the_whole(sole: Pieces) -> None:
    size = 3 * MAX_PIECES
    assert sole.begin(size=size).headers["upload-limit"].count("min-append-size=3,")
    assert least_piece(size) == 3
    assert is_problem(sole.patch(0, b"xx"), Problem.MALFORMED)
    assert sole.patch(0, b"xxx").status_code == 204


@pytest.mark.threat(39, 130)
def test_a_closed_round_takes_no_piece_and_its_pieces_go(shared_api: Api) -> None:
    upload = Pieces.of(shared_api)
    upload.begin()
    upload.patch(0, upload.content[:PIECE])
    session = upload.session
    assert session.put(A, upload.content).status_code == 201  # the same party, in one
    refusals = [upload.patch(PIECE, upload.content[PIECE:])]
    session.answer(B)
    refusals.append(upload.patch(PIECE, upload.content[PIECE:]))
    assert all(is_problem(r, Problem.CONTRIBUTION_DIFFERS) for r in refusals)
    late = Pieces(session, upload.content, slot=B)
    assert is_problem(late.begin(), Problem.CONTRIBUTION_DIFFERS)
    sweep(shared_api)
    assert left_of(upload) == 0
    digest = sha256(upload.content[:PIECE]).hexdigest()
    assert digest not in {Path(name).name for name in shared_api.stored()[1]}


@pytest.mark.threat(130)
def test_a_cancelled_session_takes_no_piece(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    session = upload.session
    alone.send("POST", f"{session.path}/cancel", session.key)
    for refusal in (upload.begin(), upload.patch(0, b"x"), upload.seal()):
        assert refusal.status_code == 410
    sweep(alone)
    assert left_of(upload) == 0


# What is removed when


@pytest.mark.threat(130)
def test_an_unfinished_upload_is_removed_only_after_its_time(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.begin()
    upload.patch(0, upload.content[:PIECE])
    alone.clock.forward(alone.service.settings.upload_seconds - 1)
    upload.patch(PIECE, upload.content[PIECE : 2 * PIECE])  # it continues: time anew
    alone.clock.forward(alone.service.settings.orphan_seconds + 1)
    sweep(alone)
    assert upload.offset() == 2 * PIECE
    blobs = len(alone.stored()[1])
    alone.clock.forward(alone.service.settings.upload_seconds)
    sweep(alone)
    assert upload.send("HEAD").status_code == 404
    assert len(alone.stored()[1]) == blobs - 2
    assert is_problem(upload.patch(2 * PIECE, b"x"), Problem.NOT_FOUND)


def test_who_gives_up_begins_again(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.begin()
    upload.patch(0, upload.content[:PIECE])
    for _ in range(2):
        assert upload.send("DELETE").status_code == 204
    assert is_problem(upload.begin(), Problem.UNAVAILABLE)
    sweep(alone)
    assert upload.begin().headers["upload-offset"] == "0"


def test_what_is_sealed_leaves_one_blob(alone: Api) -> None:
    upload = Pieces.of(alone)
    sweep(alone)  # of what tests before this one left
    before = alone.stored()[1]
    upload.fill()
    assert upload.seal().status_code == 201
    sweep(alone)
    assert left_of(upload) == 0
    assert len(alone.stored()[1]) == len(before) + 1


def test_a_deleted_session_keeps_no_piece(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    session = upload.session
    assert alone.send("DELETE", session.path, session.key).status_code == 204
    assert left_of(upload) == 0
    piece = sha256(upload.content[:PIECE]).hexdigest()
    assert piece not in {Path(name).name for name in alone.stored()[1]}


# What fails


def test_a_full_disk_costs_no_piece_that_came(
    alone: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Pieces.of(alone)
    upload.fill()

    def full(*_: object) -> None:
        raise StorageFull("It is full.")

    with monkeypatch.context() as broken:
        broken.setattr(FileDraft, "write", full)
        assert is_problem(upload.seal(), Problem.STORAGE_FULL)
    with monkeypatch.context() as little:
        little.setattr(type(alone.service.blobs), "free_bytes", lambda _: 9)
        other = Pieces(upload.session, upload.session.reply(B), slot=B)
        assert is_problem(other.begin(), Problem.STORAGE_FULL)
        assert upload.begin().status_code == 201  # it has its room
    assert upload.seal().status_code == 201


def test_a_lost_piece_is_said_and_all_begins_again(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    alone.service.blobs.remove(sha256(upload.content[:PIECE]).hexdigest())
    assert is_problem(upload.seal(), Problem.UNAVAILABLE)
    sweep(alone)
    upload.fill()
    assert upload.seal().status_code == 201


def put_together(upload: Pieces, last: datetime) -> None:
    """As if somebody were at it, who gave the last sign of life then."""
    with upload.session.api.service.database.write() as transaction:
        digest = sha256(upload.content).hexdigest()
        of_it = sa.select(PartialUpload).where(PartialUpload.digest == digest)
        transaction.scalars(of_it).one().sealing_at = last


def test_a_death_while_joining_pieces_blocks_only_for_a_while(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    put_together(upload, alone.clock.now())
    assert is_problem(upload.seal(), Problem.UNAVAILABLE)
    alone.clock.forward(alone.service.settings.lease_seconds + 1)
    assert upload.seal().status_code == 201


def test_a_clock_that_was_put_back_holds_nobody_up(alone: Api) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    put_together(upload, alone.clock.now() + timedelta(days=1))
    assert upload.seal().status_code == 201


def test_who_takes_long_over_the_pieces_gives_signs_of_life(
    alone: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Pieces.of(alone)
    upload.fill()
    renewed = Event()
    renew, copy = PieceService.renew, uploads._copy

    def heard(service: PieceService, key: SlotAttempt) -> None:
        renew(service, key)
        renewed.set()

    def slowly(*given: Any) -> None:
        assert renewed.wait(30)
        copy(*given)

    monkeypatch.setattr(PieceService, "renew", heard)
    monkeypatch.setattr(uploads, "_copy", slowly)
    assert upload.seal().status_code == 201


def test_a_sweep_beside_it_takes_no_piece(alone: Api) -> None:
    """However old its file is: a piece that a row names is no stray."""
    upload = Pieces.of(alone)
    upload.begin()
    upload.patch(0, upload.content[:PIECE])
    for name in alone.stored()[1]:
        os.utime(name, (0, 0))
    RetentionService(alone.service).sweep()
    assert upload.patch(PIECE, upload.content[PIECE:], last=True).is_success
