"""Who may do what: credentials, revocation and quotas."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import Result
from support.analyst_process import wait_for
from support.in_process import Api, StartApi

from analyst_service.contributions import Upload, store_uploads
from analyst_service.credentials import Role, authenticate, record_last_uses
from analyst_service.members import TOKEN_SECONDS
from analyst_service.models import Credential, Session
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from party_sdk.analyst_client.requests import contribution_headers
from tests.service.raw_requests import start
from tests.service.samples import PARTS, A, B, Cast, command, problem_of


class Asking(Cast):
    """A cast with one harmless request for each operation of the API."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        paths = api.send("GET", "/openapi.json").json()["paths"]
        self.places = {
            operation["operationId"]: (method, path)
            for path, methods in paths.items()
            for method, operation in methods.items()
        }
        content = self.session.reply(A)
        nothing = {"code": "unknown-code-of-nobody"}
        upload = {"content": content, "headers": contribution_headers(content)}
        bodies: dict[str, dict[str, Any]] = {
            "put_session": self.session.terms,
            "post_invitations": {},
            "preview": nothing,
            "join": self.session.joining(A) | nothing,
            "decline": nothing | {"state": "declined", "reason": ""},
            "post_stopped": {"reason": "held"},
            "put_deadline": {"deadline": "2001-01-01T00:00:00Z"},
            "put_choice": {"n_clusters": 2},
            "post_receiver": {"address": "no address"},
        }
        self.options = {"put_contribution": upload} | {
            operation: {"json": body} for operation, body in bodies.items()
        }

    def ask(
        self, operation: str, caller: str, session: str | None = None
    ) -> httpx.Response:
        method, path = self.places[operation]
        names = {"session_id": session or self.session.id, "name": "dummy"}
        path = path.format(**names, round_=1, attempt=1, receiver_id="0" * 32)
        options = self.options.get(operation, {})
        return self.api.send(method, path, self.secrets[caller], **options)


ANYBODY = {
    **dict.fromkeys(
        ("list_protocols", "list_messages", "get_identity", "get_health"), (200,) * 7
    ),
    **dict.fromkeys(("get_readiness", "get_metrics"), (200,) * 7),
    **dict.fromkeys(("preview", "join", "decline"), (404,) * 7),
}
# in the order in which they are asked for: what ends something comes last
EXPECTED: dict[str, tuple[int, ...]] = {
    **ANYBODY,
    # what both sides read
    "get_session": (401, 401, 200, 404, 200, 404, 200),
    "get_agreement": (401, 401, 200, 404, 200, 404, 200),
    "get_profiles": (401, 401, 200, 404, 200, 404, 200),
    "get_result": (401, 401, 409, 404, 409, 404, 409),
    "list_receivers": (401, 401, 200, 404, 200, 404, 200),
    "post_receiver": (401, 401, 403, 404, 403, 404, 403),  # none is told by default
    "delete_receiver": (401, 401, 204, 404, 204, 404, 204),
    # what coordinators do
    "put_session": (401, 401, 403, 403, 200, 201, 409),
    "list_sessions": (401, 401, 403, 403, 200, 200, 200),
    "post_invitations": (401, 401, 403, 403, 201, 404, 201),
    "get_audit": (401, 401, 403, 403, 200, 404, 200),
    "put_deadline": (401, 401, 403, 403, 422, 404, 422),
    "put_choice": (401, 401, 403, 403, 422, 404, 422),
    # what parties do
    "get_task": (401, 401, 200, 404, 403, 404, 403),
    "post_stopped": (401, 401, 204, 404, 403, 404, 403),
    "put_contribution": (401, 401, 201, 404, 403, 404, 403),
    "cancel_session": (401, 401, 403, 403, 200, 404, 200),
    "delete_session": (401, 401, 403, 403, 204, 404, 204),
}


@pytest.mark.threat(26, 27)
def test_each_caller_gets_what_the_matrix_says(api: Api) -> None:
    cast, seen = Asking(api), {}
    assert cast.places.keys() == EXPECTED.keys()
    statuses = {
        (operation, caller): status
        for operation, row in EXPECTED.items()
        for caller, status in zip(cast.secrets, row, strict=True)
    }
    refused = [pair for pair, status in statuses.items() if status >= 400]
    before = api.stored()
    for operation, caller in refused:
        response = cast.ask(operation, caller)
        seen[operation, caller] = response.status_code
        if response.status_code == 401:
            assert response.json()["type"] == Problem.UNAUTHENTICATED.urn
            assert response.headers["www-authenticate"] == "Bearer"
        elif caller in {"stranger", "another coordinator"} and operation not in ANYBODY:
            unknown = cast.ask(operation, caller, session="s-unknown")
            assert plain(response) == plain(unknown), "as a session that is not there"
    assert api.stored() == before
    for operation, caller in statuses:
        if (operation, caller) not in seen:
            seen[operation, caller] = cast.ask(operation, caller).status_code
    assert seen == statuses


def plain(response: httpx.Response) -> tuple[dict[str, Any], dict[str, str]]:
    said = response.json() if response.content else {}  # HEAD has no body
    body = {k: v for k, v in said.items() if k != "request_id"}
    headers = {k: v for k, v in response.headers.items() if k != "x-request-id"}
    return body, headers


@pytest.mark.threat(26)
def test_the_id_of_another_coordinator_looks_free(api: Api) -> None:
    taken = api.open(Dummy(), PARTS)
    key = api.key()
    names = ["s-free", taken.id]
    for _ in range(2):  # again: neither is new now
        put = [
            api.send("PUT", f"/v1/sessions/{name}", key, json=taken.terms)
            for name in names
        ]
        assert put[0].status_code == put[1].status_code < 300
        assert [response.json()["id"] for response in put] == names
        free, other = (plain(response) for response in put)
        own = {"id": "", "terms_digest": ""}  # which every coordinator knows itself
        assert free[0] | own == other[0] | own
        assert free[1].keys() == other[1].keys()
    others = {**taken.terms, "about": {"title": "other"}}
    for name in names:
        refused = api.send("PUT", f"/v1/sessions/{name}", key, json=others)
        assert refused.status_code == 409
    listed = api.send("GET", "/v1/sessions", key).json()["sessions"]
    assert [line["id"] for line in listed] == sorted(names)


@pytest.mark.threat(26)
def test_sessions_of_one_id_know_nothing_of_each_other(api: Api) -> None:
    one = api.open(Dummy(n_clusters=2), PARTS)
    two = api.open(Dummy(n_clusters=3), PARTS, session=one.id)
    one.join().answer()
    assert (one.status["round"], two.status["round"]) == (2, 0)
    assert api.send("GET", one.path, two.key).json()["state"] == "recruiting"
    assert two.try_join(A).json()["session"] == one.id
    two.join().finish()
    assert one.put(A, one.reply(A)).json()["session"] == one.id
    for session in (one, two):
        assert {entry["session"] for entry in session.audit} == {one.id}
    assert (one.status["state"], two.status["state"]) == ("collecting", "completed")
    assert api.send("DELETE", two.path, two.key).status_code == 204
    one.answer(B)
    assert one.finish().status["state"] == "completed"


def test_an_administrator_tells_sessions_of_one_id_apart(api: Api) -> None:
    one = api.open(Dummy(), PARTS)
    two = api.open(Dummy(), PARTS, session=one.id)
    key = api.key(Role.ADMINISTRATOR)
    listed = api.send("GET", "/v1/sessions", key).json()["sessions"]
    first, second = (line["id"] for line in listed)
    assert first == one.id
    assert second.startswith(f"{one.id}.")
    cancelled = api.send("POST", f"/v1/sessions/{second}/cancel", key).json()
    assert (cancelled["id"], cancelled["state"]) == (second, "cancelled")
    assert (one.status["state"], two.status["state"]) == ("recruiting", "cancelled")
    assert two.status["id"] == one.id
    for caller in (one.key, two.key):
        assert api.send("GET", f"/v1/sessions/{second}", caller).status_code == 404
    terms = {**one.terms, "about": {"title": "of an administrator"}}
    assert api.send("PUT", one.path, key, json=terms).status_code == 409


def test_a_key_is_shown_as_a_bearer_and_refused_to_the_second_of_its_end(
    api: Api,
) -> None:
    key = api.key(seconds=100)
    for scheme, status in {
        "Basic": 401,
        "bearer ": 200,
        "": 401,
        "Bearer": 200,
    }.items():
        header = {"Authorization": f"{scheme} {key}".strip()}
        assert api.send("GET", "/v1/sessions", headers=header).status_code == status
    api.clock.forward(99.999)
    assert api.send("GET", "/v1/sessions", key).status_code == 200
    api.clock.forward(0.001)
    assert api.send("GET", "/v1/sessions", key).status_code == 401


def test_joining_again_replaces_an_expired_token(api: Api) -> None:
    session = api.open(Dummy(), PARTS, deadlines={"round": 365 * 86_400}).join()
    api.clock.forward(TOKEN_SECONDS)
    assert session.task(A).status_code == 401
    session.join(A)
    assert session.task(A).status_code == 200


# A revoked party stays out, and a join that somebody recorded counts once


Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("analyst_service.database.SystemClock", lambda: api.clock)
    return partial(command, api.service.settings)


def tokens(api: Api, slot: str) -> list[str]:
    with api.service.database.read() as transaction:
        query = sa.select(Credential.id).where(Credential.slot == slot)
        return list(transaction.scalars(query))


@pytest.mark.threat(29)
@pytest.mark.parametrize("how", ["all", "one"])
def test_a_revoked_party_does_not_come_back_by_joining(
    api: Api, run: Run, how: str
) -> None:
    session = api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    session.join()
    earlier = session.tokens[A]
    session.join(A)
    again = session.joining(A)
    unknown = run("key", "revoke", "--session", "another")
    assert (unknown.exit_code, session.task(A).status_code) == (1, 200)
    words = ("--session", session.id) if how == "all" else (tokens(api, A)[0],)
    done = run("key", "revoke", *words)
    assert done.exit_code == 0, done.output
    for token in (earlier, session.tokens[A]):
        assert api.send("GET", f"{session.path}/task", token).status_code == 401
    for body in (recorded, again):
        refused = api.send("POST", "/v1/join", json=body)
        assert problem_of(refused) is Problem.INVITATION_EXPIRED
        assert "revoked" in refused.json()["detail"]
    previewed = api.send("POST", "/v1/join/preview", json={"code": session.codes[A]})
    assert problem_of(previewed) is Problem.INVITATION_EXPIRED
    assert session.task(B).status_code == (401 if how == "all" else 200)
    revoked = [e["slot"] for e in session.audit if e["event"] == "revoked"]
    assert revoked == ([A, B] if how == "all" else [A])


def test_requests_in_progress_fail_once_their_token_is_revoked(
    api: Api, run: Run
) -> None:
    """A waiting poll gets no task, and an upload that is still arriving is not stored."""
    recruiting = api.open(Dummy(), PARTS).join(A)
    poll = start(
        api, "GET", f"{recruiting.path}/task?wait=20", secret=recruiting.tokens[A]
    )
    wait_for(lambda: recruiting.id in api.service.notifier.awaited_sessions)
    assert run("key", "revoke", "--session", recruiting.id).exit_code == 0
    recruiting.join(B)
    assert poll.result(60).status == 401

    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)

    def pieces() -> Any:
        yield content[:10]
        assert run("key", "revoke", "--session", session.id).exit_code == 0
        yield content[10:]

    before = api.stored()[0]["contributions"]
    refused = api.send(
        "PUT",
        session.place(content),
        session.tokens[A],
        {**contribution_headers(content), "Content-Length": str(len(content))},
        content=pieces(),
    )
    assert refused.status_code == 401
    assert api.stored()[0]["contributions"] == before


@pytest.mark.threat(29)
def test_a_recorded_join_gives_no_second_token(api: Api) -> None:
    session = api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    first = api.send("POST", "/v1/join", json=recorded)
    assert first.status_code == 200
    for _ in range(3):
        replayed = api.send("POST", "/v1/join", json=recorded)
        assert problem_of(replayed) is Problem.KEY_NOT_AUTHENTIC
    assert len(tokens(api, A)) == 1
    session.joins[A] += 1
    assert session.try_join(A).status_code == 200, "the holder of the key signs anew"
    shown = api.send("POST", "/v1/join/preview", json={"code": session.codes[A]})
    assert shown.json()["joins"] == 2


CHANGED: dict[str, dict[str, Any]] = {
    "rows": {"n_rows": 999},
    "columns": {"n_columns": 7},
    "mark": {"mark": "0" * 64},
}


@pytest.mark.threat(29)
@pytest.mark.parametrize("what", CHANGED)
def test_the_proof_of_a_join_covers_the_line_of_the_roster(api: Api, what: str) -> None:
    session = api.open(Dummy(), PARTS)
    body = session.joining(A)
    changed = {**body, "member": {**body["member"], **CHANGED[what]}}
    before = api.stored()
    refused = api.send("POST", "/v1/join", json=changed)
    assert problem_of(refused) is Problem.KEY_NOT_AUTHENTIC
    assert api.stored() == before
    assert api.send("POST", "/v1/join", json=body).status_code == 200


@pytest.mark.threat(41)
def test_an_upload_before_all_have_joined_gets_a_retry_time(api: Api) -> None:
    content = api.open(Dummy(), PARTS).join().reply(A)
    session = api.open(Dummy(), PARTS).join(A)
    path = f"{session.path}/rounds/1/attempts/1/contribution"
    before = api.stored()
    early = session.put(A, content, path)
    assert problem_of(early) is Problem.NOT_READY
    assert early.headers["retry-after"] == "1"
    assert api.stored() == before


QUOTA = 700  # bytes: one contribution fits, two do not


def refused(answer: httpx.Response) -> str:
    assert answer.status_code == 403, answer.text
    assert answer.json()["type"] == Problem.QUOTA_REACHED.urn
    detail: str = answer.json()["detail"]
    return detail


def test_a_coordinator_opens_as_many_sessions_as_its_quota_says(
    start_api: StartApi,
) -> None:
    with start_api(quota_sessions=2) as api:
        first = api.open(Dummy(), PARTS)

        def put(name: str, key: str = first.key) -> httpx.Response:
            return api.send("PUT", f"/v1/sessions/{name}", key, json=first.terms)

        assert put("s-second").status_code == 201
        assert refused(put("s-third")) == (
            "This key has 2 open sessions; its quota is 2."
        )
        assert put("s-second").status_code == 200  # a repeat opens nothing
        assert put("s-third", api.key()).status_code == 201  # another's is another's
        api.send("POST", "/v1/sessions/s-second/cancel", first.key)
        assert put("s-third").status_code == 201


def test_uploads_over_the_quota_are_refused_without_a_trace(
    start_each_api: StartApi,
) -> None:
    """Of two simultaneous uploads the second one waits until the first one is counted."""
    with start_each_api(quota_bytes=QUOTA) as api:
        session, other = (api.open(Dummy(), PARTS).join() for _ in range(2))
        content = {slot: session.reply(slot) for slot in (A, B)}
        with ThreadPoolExecutor(2) as threads:
            both = list(threads.map(session.put, content, content.values()))
        assert sorted(answer.status_code for answer in both) == [201, 403]
        stored, over = (A, B) if both[0].is_success else (B, A)
        before = api.stored()
        assert refused(session.put(over, content[over])) == (
            f"The open sessions of this coordinator store {len(content[stored])} bytes; "
            f"{len(content[over])} more do not fit into the quota of {QUOTA}."
        )
        assert api.stored() == before
        # a repeat of what is stored, and other coordinators, meet no quota
        assert session.put(stored, content[stored]).status_code == 200
        assert other.put(B, other.reply(B)).status_code == 201


@pytest.mark.postgres
def test_uploads_of_several_coordinators_do_not_block_the_record_of_uses(
    start_api: StartApi, postgres_url: str
) -> None:
    """Both lock the coordinators' keys in the same order, so there is no deadlock."""
    with start_api(database_url=postgres_url, quota_bytes=QUOTA) as api:
        database, now = api.service.database, api.clock.now()
        sessions = [api.open(Dummy(), PARTS).join() for _ in range(2)]
        with database.read() as db:
            owner = {s: db.get_one(Session, s.id).owner_id for s in sessions}
            first, last = sorted(sessions, key=owner.__getitem__)
            headers = [f"Bearer {session.tokens[A]}" for session in (last, first)]
            callers = authenticate(db, headers)
        uploads = [
            Upload(caller, session.id, 1, 1, sha256(content).hexdigest(), len(content))
            for caller, session in zip(callers, (last, first), strict=True)
            for content in [session.reply(A)]
        ]

        def store() -> list[Any]:
            with database.write() as db:
                stored, _ = store_uploads(db, uploads, QUOTA, lambda *_: None)
                return stored

        with ThreadPoolExecutor(1) as threads, database.write() as db:
            record_last_uses(db, {owner[first]: now})
            storing = threads.submit(store)
            with pytest.raises(TimeoutError):
                storing.result(0.3)
            record_last_uses(db, {owner[last]: now})
            db.commit()
            assert [is_new for _, is_new in storing.result(60)] == [True, True]


@pytest.mark.usefixtures("in_blobs")
def test_a_long_upload_over_the_quota_is_not_read(start_api: StartApi) -> None:
    with start_api(quota_bytes=QUOTA) as api:
        session = api.open(Dummy(), PARTS).join()
        session.answer(A)
        content, unread = session.reply(B), iter([b"unread"])
        headers = {**contribution_headers(content), "Content-Length": "700"}
        place, token = session.place(content), session.tokens[B]
        refused(api.send("PUT", place, token, headers, content=unread))
        assert list(unread)
