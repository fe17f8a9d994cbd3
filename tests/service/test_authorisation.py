"""Who may do what: credentials, revocation and quotas."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from support.analyst_process import Analyst, Crowd, wait_for
from support.databases import BOTH_DATABASES, Databases, on_both_databases
from support.in_process import in_process

from analyst_service import credentials
from analyst_service.credentials import Role
from analyst_service.members.service import TOKEN_SECONDS
from analyst_service.settings import Settings
from analyst_service.storage.models import Base, Credential
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.analyst_client.requests import contribution_headers
from party_sdk.cli import main
from party_sdk.party.party_session import PartySession
from tests.service.raw_requests import start
from tests.service.samples import LAYOUT, PARTS, A, B, StartApi

if TYPE_CHECKING:
    from support.in_process import Api, ByHand


class Cast:
    """A session in its first round, and everybody who might ask for something."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.session = api.open(Dummy(), PARTS).join()
        self.other = api.open(Dummy(), PARTS).join()
        self.content = self.session.reply(A)
        self.secrets: dict[str, str | None] = {
            "nobody": None,
            "garbage": "ck_garbage",
            "member": self.session.tokens[A],
            "stranger": self.other.tokens[A],
            "owner": self.session.key,
            "another coordinator": api.key(),
            "administrator": api.key(Role.ADMINISTRATOR),
        }

    def ask(
        self, operation: str, caller: str, session: str | None = None
    ) -> httpx.Response:
        method, path, options = self.requests()[operation]
        path = path.format(session=session or self.session.id)
        return self.api.send(method, path, self.secrets[caller], **options)

    def requests(self) -> dict[str, tuple[str, str, dict[str, Any]]]:
        """One harmless request per operation: method, path, body."""
        here = "/v1/sessions/{session}"
        nothing = {"code": "unknown-code-of-nobody"}
        joining = self.session.joining(A) | nothing
        return {
            "list_protocols": ("GET", "/v1/protocols", {}),
            "list_messages": ("GET", "/v1/protocols/dummy/messages", {}),
            "get_identity": ("GET", "/v1/identity", {}),
            "get_health": ("GET", "/healthz", {}),
            "get_readiness": ("GET", "/readyz", {}),
            "get_metrics": ("GET", "/metrics", {}),
            "put_session": ("PUT", here, {"json": self.session.terms}),
            "list_sessions": ("GET", "/v1/sessions", {}),
            "get_session": ("GET", here, {}),
            "get_agreement": ("GET", f"{here}/agreement", {}),
            "post_invitations": ("POST", f"{here}/invitations", {"json": {}}),
            "preview": ("POST", "/v1/join/preview", {"json": nothing}),
            "join": ("POST", "/v1/join", {"json": joining}),
            "decline": (
                "POST",
                "/v1/join/decline",
                {"json": nothing | {"state": "declined", "reason": ""}},
            ),
            "post_stopped": ("POST", f"{here}/stopped", {"json": {"reason": "left"}}),
            "get_task": ("GET", f"{here}/task", {}),
            "put_contribution": (
                "PUT",
                f"{here}/rounds/1/attempts/1/contribution",
                {
                    "content": self.content,
                    "headers": contribution_headers(self.content),
                },
            ),
            "get_result": ("GET", f"{here}/result", {}),
            "delete_session": ("DELETE", here, {}),
            "get_audit": ("GET", f"{here}/audit", {}),
            "get_profiles": ("GET", f"{here}/profiles", {}),
            "put_deadline": (
                "PUT",
                f"{here}/deadline",
                {"json": {"deadline": "2001-01-01T00:00:00Z"}},
            ),
            "put_choice": ("PUT", f"{here}/choice", {"json": {"n_clusters": 2}}),
            "cancel_session": ("POST", f"{here}/cancel", {}),
            "list_receivers": ("GET", f"{here}/receivers", {}),
            "post_receiver": (
                "POST",
                f"{here}/receivers",
                {"json": {"address": "no address"}},
            ),
            "delete_receiver": ("DELETE", f"{here}/receivers/{'0' * 32}", {}),
        }


CALLERS = (
    "nobody",
    "garbage",
    "member",
    "stranger",
    "owner",
    "another coordinator",
    "administrator",
)
EXPECTED: dict[str, tuple[int, ...]] = {
    # who needs no credential at all
    "list_protocols": (200, 200, 200, 200, 200, 200, 200),
    "list_messages": (200, 200, 200, 200, 200, 200, 200),
    "get_identity": (200, 200, 200, 200, 200, 200, 200),
    "get_health": (200, 200, 200, 200, 200, 200, 200),
    "get_readiness": (200, 200, 200, 200, 200, 200, 200),
    "get_metrics": (200, 200, 200, 200, 200, 200, 200),
    "preview": (404, 404, 404, 404, 404, 404, 404),
    "join": (404, 404, 404, 404, 404, 404, 404),
    "decline": (404, 404, 404, 404, 404, 404, 404),
    # what coordinators do
    "put_session": (401, 401, 403, 403, 200, 201, 409),
    "list_sessions": (401, 401, 403, 403, 200, 200, 200),
    "post_invitations": (401, 401, 403, 403, 201, 404, 201),
    "delete_session": (401, 401, 403, 403, 204, 404, 204),
    "get_audit": (401, 401, 403, 403, 200, 404, 200),
    "get_profiles": (401, 401, 200, 404, 200, 404, 200),
    "put_deadline": (401, 401, 403, 403, 422, 404, 422),
    "put_choice": (401, 401, 403, 403, 422, 404, 422),
    "cancel_session": (401, 401, 403, 403, 200, 404, 200),
    # what both sides read
    "get_session": (401, 401, 200, 404, 200, 404, 200),
    "get_agreement": (401, 401, 200, 404, 200, 404, 200),
    "get_result": (401, 401, 409, 404, 409, 404, 409),
    "list_receivers": (401, 401, 200, 404, 200, 404, 200),
    "post_receiver": (401, 401, 403, 404, 403, 404, 403),  # none is told by default
    "delete_receiver": (401, 401, 204, 404, 204, 404, 204),
    # what parties do
    "get_task": (401, 401, 200, 404, 403, 404, 403),
    "post_stopped": (401, 401, 204, 404, 403, 404, 403),
    "put_contribution": (401, 401, 201, 404, 403, 404, 403),
}


@pytest.fixture
def cast(api: Api) -> Cast:
    return Cast(api)


def test_the_matrix_names_every_operation_of_the_service(api: Api, cast: Cast) -> None:
    document = api.send("GET", "/openapi.json").json()
    operations = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert operations == EXPECTED.keys() == cast.requests().keys()


@pytest.mark.threat(26, 27)
@pytest.mark.parametrize("operation", EXPECTED)
def test_each_caller_gets_what_the_matrix_says(cast: Cast, operation: str) -> None:
    expected = dict(zip(CALLERS, EXPECTED[operation], strict=True))
    refused = [caller for caller in CALLERS if expected[caller] >= 400]
    before = cast.api.stored()
    responses = {caller: cast.ask(operation, caller) for caller in refused}
    assert cast.api.stored() == before
    others = (caller for caller in CALLERS if caller not in refused)
    responses |= {caller: cast.ask(operation, caller) for caller in others}
    assert {who: r.status_code for who, r in responses.items()} == expected
    for response in responses.values():
        if response.status_code == 401:
            assert response.json()["type"] == Problem.UNAUTHENTICATED.urn
            assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.threat(26)
@pytest.mark.parametrize(
    "operation",
    [name for name, (_, _, _, _, _, other, _) in EXPECTED.items() if other == 404],
)
def test_anothers_session_answers_like_an_unknown_one(
    cast: Cast, operation: str
) -> None:
    for caller in ("stranger", "another coordinator"):
        hidden = cast.ask(operation, caller)
        unknown = cast.ask(operation, caller, session="s-unknown")
        assert hidden.status_code == unknown.status_code >= 400
        assert plain(hidden) == plain(unknown)


def plain(response: httpx.Response) -> tuple[dict[str, Any], dict[str, str]]:
    said = response.json() if response.content else {}  # HEAD has no body
    body = {k: v for k, v in said.items() if k != "request_id"}
    headers = {k: v for k, v in response.headers.items() if k != "x-request-id"}
    return body, headers


# Ids of several coordinators


@pytest.mark.threat(26)
def test_the_id_of_another_coordinator_looks_free(
    each_api: Api,
) -> None:
    taken = each_api.open(Dummy(), PARTS)
    key = each_api.key()
    names = ["s-free", taken.id]
    for _ in range(2):  # again: neither is new now
        put = [
            each_api.send("PUT", f"/v1/sessions/{name}", key, json=taken.terms)
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
        refused = each_api.send("PUT", f"/v1/sessions/{name}", key, json=others)
        assert refused.status_code == 409
    listed = each_api.send("GET", "/v1/sessions", key).json()["sessions"]
    assert [line["id"] for line in listed] == sorted(names)


@pytest.mark.threat(26)
def test_sessions_of_one_id_know_nothing_of_each_other(each_api: Api) -> None:
    one = each_api.open(Dummy(n_clusters=2), PARTS)
    two = each_api.open(Dummy(n_clusters=3), PARTS, session=one.id)
    one.join().answer()
    assert (one.status["round"], two.status["round"]) == (2, 0)
    assert each_api.send("GET", one.path, two.key).json()["state"] == "recruiting"
    assert two.try_join(A).json()["session"] == one.id
    two.join().finish()
    assert one.put(A, one.reply(A)).json()["session"] == one.id
    for session in (one, two):
        path = f"{one.path}/audit"
        lines = each_api.send("GET", path, session.key).json()["lines"]
        assert {json.loads(line)["session"] for line in lines} == {one.id}
    assert (one.status["state"], two.status["state"]) == ("collecting", "completed")
    assert each_api.send("DELETE", two.path, two.key).status_code == 204
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


def test_lists_show_own_sessions_and_administrators_see_all(
    cast: Cast,
) -> None:
    def listed(caller: str) -> set[str]:
        page = cast.ask("list_sessions", caller).json()
        return {line["id"] for line in page["sessions"]}

    assert listed("owner") == {cast.session.id}
    assert listed("another coordinator") == set()
    assert listed("administrator") == {cast.session.id, cast.other.id}


def test_a_party_sees_its_own_task_and_its_own_result_only(api: Api) -> None:
    session = api.open(Dummy(n_clusters=3), PARTS).join()
    tasks = {slot: session.task(slot).content for slot in LAYOUT.names}
    assert tasks[A] != tasks[B]
    session.finish()
    path = f"{session.path}/result"
    found = {slot: api.send("GET", path, session.tokens[slot]) for slot in (A, B)}
    summary = api.send("GET", path, session.key)
    assert [r.status_code for r in (*found.values(), summary)] == [200] * 3
    assert len({found[A].content, found[B].content, summary.content}) == 3


# Credentials that end


@pytest.mark.parametrize("scheme", ["Basic", "bearer ", "", "Bearer"])
def test_a_credential_in_another_form_is_none(api: Api, scheme: str) -> None:
    header = {"Authorization": f"{scheme} {api.key()}".strip()}
    status = 200 if scheme.strip().lower() == "bearer" else 401
    assert api.send("GET", "/v1/sessions", headers=header).status_code == status


def test_an_expired_key_is_refused_to_the_second(api: Api) -> None:
    key = api.key(seconds=100)
    api.clock.forward(99.999)
    assert api.send("GET", "/v1/sessions", key).status_code == 200
    api.clock.forward(0.001)
    assert api.send("GET", "/v1/sessions", key).status_code == 401


def test_joining_again_replaces_an_expired_token(
    api: Api,
) -> None:
    session = api.open(Dummy(), PARTS, deadlines={"round": 365 * 86_400}).join()
    api.clock.forward(TOKEN_SECONDS)
    assert session.task(A).status_code == 401
    session.join(A)
    assert session.task(A).status_code == 200


@pytest.mark.parametrize("role", ["coordinator", "party"])
def test_a_revoked_credential_is_refused(api: Api, role: str) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    secret = session.key if role == "coordinator" else session.tokens[A]
    assert api.send("GET", session.path, secret).status_code == 200
    api.service.database.transact(credentials.revoke, api.caller(secret).credential_id)
    assert api.send("GET", session.path, secret).status_code == 401


# What is kept


def forms(secret: bytes | str) -> Iterator[bytes]:
    """Every form in which a secret might lie around."""
    raw = secret.encode() if isinstance(secret, str) else secret
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield base64.b64encode(raw).rstrip(b"=")
    yield base64.urlsafe_b64encode(raw).rstrip(b"=")


@pytest.mark.threat(32, 33)
@on_both_databases
def test_no_secret_lies_in_the_database_the_blobs_or_the_log(
    analyst: Analyst, gather: Callable[..., Crowd]
) -> None:
    crowd = gather(Dummy(n_clusters=2), PARTS)
    crowd.start()
    crowd.join()
    secrets: dict[str, bytes | str] = {"key": analyst.key}
    for slot, text in crowd.invitations.items():
        invitation = Invitation.parse(text)
        secrets[f"code of {slot}"] = invitation.code
        secrets["session secret"] = invitation.secret
        kept = PartySession(crowd.home, crowd.session.id, slot).load_identity()
        assert kept.token
        secrets[f"token of {slot}"] = kept.token
    secrets |= {f"entropy of {role}": key for role, key in crowd.keys.items()}
    assert len(secrets) == 1 + 1 + 3 * len(LAYOUT.names) + 1
    found = [
        f"{what} in {place}"
        for place, content in everything(analyst).items()
        for what, secret in secrets.items()
        if any(form in content for form in forms(secret))
    ]
    assert found == []


def everything(analyst: Analyst) -> dict[str, bytes]:
    """All files of the service, its log among them, and all rows."""
    files = {
        str(path): path.read_bytes()
        for path in analyst.data_dir.parent.rglob("*")
        if path.is_file()
    }
    assert files[str(analyst.log)], "the service logs"
    rows = {f"row {number}": row for number, row in enumerate(dumped(analyst))}
    assert len(rows) > 20
    return files | rows


def dumped(analyst: Analyst) -> Iterator[bytes]:
    url = analyst.environment["COTERIE_DATABASE_URL"]
    engine = sa.create_engine(Settings(database_url=url).database)
    with engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                yield b"\t".join(
                    value if isinstance(value, bytes) else str(value).encode()
                    for value in row
                )
    engine.dispose()


def test_the_search_for_secrets_finds_one_that_is_there() -> None:
    secret = bytes(range(32))
    kept = [b"x" + secret, secret.hex().encode() + b"x", base64.b64encode(secret)]
    for content in kept:
        assert any(form in content for form in forms(secret))


# A revoked party stays out, and a join that somebody recorded counts once


Run = Callable[..., Result]


@pytest.fixture
def run(each_api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of the administrator beside the service."""
    settings = each_api.service.settings
    monkeypatch.setenv("COTERIE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("COTERIE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(
        "analyst_service.storage.database.SystemClock", lambda: each_api.clock
    )
    return lambda *words: CliRunner().invoke(main, words)


def problem_of(response: httpx.Response) -> Problem:
    return Problem.of_slug(response.json()["type"])


def tokens(api: Api, slot: str) -> list[str]:
    """The ids of a slot's tokens."""
    with api.service.database.read() as transaction:
        query = sa.select(Credential.id).where(Credential.slot == slot)
        return list(transaction.scalars(query))


def revoke(run: Run, api: Api, session: ByHand, how: str) -> None:
    words = ("--session", session.id) if how == "all" else (tokens(api, A)[0],)
    done = run("key", "revoke", *words)
    assert done.exit_code == 0, done.output


@pytest.mark.threat(29)
@pytest.mark.parametrize("how", ["all", "one"])
def test_a_revoked_party_does_not_come_back_by_joining(
    each_api: Api, run: Run, how: str
) -> None:
    session = each_api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    session.join()
    again = session.joining(A)
    revoke(run, each_api, session, how)
    assert session.task(A).status_code == 401
    for body in (recorded, again):
        refused = each_api.send("POST", "/v1/join", json=body)
        assert problem_of(refused) is Problem.INVITATION_EXPIRED
    previewed = each_api.send(
        "POST", "/v1/join/preview", json={"code": session.codes[A]}
    )
    assert problem_of(previewed) is Problem.INVITATION_EXPIRED
    assert session.task(B).status_code == (401 if how == "all" else 200)


def test_every_token_of_a_revoked_slot_ends_with_it(each_api: Api, run: Run) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    earlier = session.tokens[A]
    session.join(A)
    assert len(tokens(each_api, A)) == 2
    revoke(run, each_api, session, "one")
    for token in (earlier, session.tokens[A]):
        path = f"{session.path}/task"
        assert each_api.send("GET", path, token).status_code == 401


def test_the_audit_says_who_was_revoked(each_api: Api, run: Run) -> None:
    session = each_api.open(Dummy(), PARTS).join(A)
    revoke(run, each_api, session, "all")
    page = each_api.send("GET", f"{session.path}/audit", session.key).json()
    last = json.loads(page["lines"][-1])
    assert (last["event"], last["slot"]) == ("revoked", A)
    assert session.try_join(B).status_code == 200, "nobody had taken this one"


def test_revoking_the_parties_of_no_session_ends_nothing(
    each_api: Api, run: Run
) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    done = run("key", "revoke", "--session", "another")
    assert done.exit_code == 1
    assert "No party of a session 'another' has a token" in done.stderr
    assert session.task(A).status_code == 200


def test_requests_in_progress_fail_once_their_token_is_revoked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that waits is given no task, and an upload that arrives is not kept."""
    settings = api.service.settings
    monkeypatch.setenv("COTERIE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("COTERIE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(
        "analyst_service.storage.database.SystemClock", lambda: api.clock
    )
    recruiting = api.open(Dummy(), PARTS).join(A)
    poll = start(
        api, "GET", f"{recruiting.path}/task?wait=20", secret=recruiting.tokens[A]
    )
    wait_for(lambda: recruiting.id in api.service.notifier.waited_for)
    assert CliRunner().invoke(main, ["key", "revoke", "--session", recruiting.id])
    recruiting.join(B)
    assert poll.result(60).status == 401

    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)

    def pieces() -> Any:
        yield content[:10]
        CliRunner().invoke(main, ["key", "revoke", "--session", session.id])
        yield content[10:]

    from party_sdk.analyst_client.requests import contribution_headers

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


# A join that somebody recorded


@pytest.mark.threat(29)
def test_a_recorded_join_gives_no_second_token(each_api: Api) -> None:
    session = each_api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    first = each_api.send("POST", "/v1/join", json=recorded)
    assert first.status_code == 200
    for _ in range(3):
        replayed = each_api.send("POST", "/v1/join", json=recorded)
        assert problem_of(replayed) is Problem.KEY_NOT_AUTHENTIC
    assert len(tokens(each_api, A)) == 1
    session.joins[A] += 1
    assert session.try_join(A).status_code == 200, "the holder of the key signs anew"
    shown = each_api.send("POST", "/v1/join/preview", json={"code": session.codes[A]})
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


# An upload that comes too early


@pytest.mark.threat(41)
def test_an_upload_before_all_have_joined_gets_a_retry_time(api: Api) -> None:
    content = api.open(Dummy(), PARTS).join().reply(A)
    session = api.open(Dummy(), PARTS).join(A)
    path = f"{session.path}/rounds/1/attempts/1/contribution"
    before = api.stored()
    early = session.put(A, content, path)
    assert (early.status_code, problem_of(early)) == (409, Problem.NOT_READY)
    assert early.headers["retry-after"] == "1"
    assert api.stored() == before


# Quotas: what one coordinator may take, and that others notice nothing of it


QUOTA = 700  # bytes: one contribution fits, two do not


def refused(answer: httpx.Response) -> str:
    """The sentence with which a quota refuses."""
    assert answer.status_code == 403, answer.text
    assert answer.json()["type"] == Problem.QUOTA_REACHED.urn
    detail: str = answer.json()["detail"]
    return detail


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_a_coordinator_opens_as_many_sessions_as_its_quota_says(
    kind: str, databases: Databases, tmp_path: Any
) -> None:
    with (
        databases.current(kind, tmp_path) as url,
        in_process(tmp_path / "api", url, quota_sessions=2) as api,
    ):
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


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_an_upload_over_the_quota_is_refused_without_a_trace(
    kind: str, databases: Databases, tmp_path: Any
) -> None:
    with (
        databases.current(kind, tmp_path) as url,
        in_process(tmp_path / "api", url, quota_bytes=QUOTA) as api,
    ):
        session, other = (api.open(Dummy(), PARTS).join() for _ in range(2))
        content = {slot: session.reply(slot) for slot in (A, B)}
        assert session.put(A, content[A]).status_code == 201
        before = api.stored()
        assert refused(session.put(B, content[B])) == (
            f"The open sessions of this coordinator hold {len(content[A])} bytes; "
            f"{len(content[B])} more do not fit into the quota of {QUOTA}."
        )
        assert api.stored() == before
        # a repeat of what is stored, and other coordinators, meet no quota
        assert session.put(A, content[A]).status_code == 200
        assert other.put(B, other.reply(B)).status_code == 201


def test_simultaneous_uploads_cannot_exceed_the_quota(
    start_api: StartApi,
) -> None:
    with start_api(quota_bytes=QUOTA) as api:
        session = api.open(Dummy(), PARTS).join()
        content = {slot: session.reply(slot) for slot in (A, B)}
        with ThreadPoolExecutor(2) as threads:
            answers = threads.map(
                lambda slot: session.put(slot, content[slot]), content
            )
        assert sorted(answer.status_code for answer in answers) == [201, 403]
