"""Who may do what, who learns what exists, and what is kept of secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from support.analyst_process import Analyst, Crowd
from support.databases import on_both_databases

from analyst_service.credentials import Role, revoke
from analyst_service.members.service import TOKEN_SECONDS
from analyst_service.settings import Settings
from analyst_service.storage.models import Base
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.analyst_client.requests import contribution_headers
from party_sdk.party.party_session import PartySession

if TYPE_CHECKING:
    from support.in_process import Api

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B = LAYOUT.names


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
    responses = {caller: cast.ask(operation, caller) for caller in CALLERS}
    found = {caller: r.status_code for caller, r in responses.items()}
    assert found == dict(zip(CALLERS, EXPECTED[operation], strict=True))
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


def test_joining_again_keeps_the_earlier_token_valid(
    api: Api,
) -> None:
    """Of a join that was sent twice either response may be the one that arrives."""
    session = api.open(Dummy(), PARTS).join(A)
    earlier = session.tokens[A]
    session.join(A)
    assert session.tokens[A] != earlier
    assert api.send("GET", session.path, earlier).status_code == 200
    assert api.send("GET", session.path, session.tokens[A]).status_code == 200


@pytest.mark.parametrize("role", ["coordinator", "party"])
def test_a_revoked_credential_is_refused(api: Api, role: str) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    secret = session.key if role == "coordinator" else session.tokens[A]
    assert api.send("GET", session.path, secret).status_code == 200
    api.service.database.transact(revoke, api.caller(secret).credential_id)
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
