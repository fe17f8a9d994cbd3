"""No verb, field or secret is exposed beyond what the tests list."""

import base64
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from support.analyst_process import Analyst, Crowd
from support.in_process import Api, in_process

from analyst_service.models import Base, Credential, Invitation
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.terms.terms import Layout
from party_sdk.analyst_client import invitations
from party_sdk.party.party_session import PartySession
from tests.service.samples import PARTS, A, Cast

VERBS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    """A cast for all tests with refused requests, which change nothing."""
    with in_process(tmp_path_factory.mktemp("world")) as api:
        yield Cast(api)


@pytest.mark.threat(26)
def test_no_verb_is_open_that_is_not_documented(world: Cast) -> None:
    api, before = world.api, world.api.stored()
    names = {"name": "dummy", "session_id": world.session.id, "receiver_id": "0" * 32}
    for path, documented in api.send("GET", "/openapi.json").json()["paths"].items():
        address = path.format(**names, round_=1, attempt=1)
        for verb in set(VERBS) - {verb.upper() for verb in documented}:
            for secret in world.secrets.values():
                assert api.send(verb, address, secret).status_code == 404
    assert api.stored() == before


# Fields


@pytest.mark.threat(30)
@pytest.mark.parametrize(
    "field", ["owner", "owner_id", "state", "party", "receipt", "id", "deleted_at"]
)
def test_no_body_sets_what_is_not_its_to_set(world: Cast, field: str) -> None:
    session, api = world.session, world.api
    invited = api.open(Dummy(), PARTS)
    before = api.stored()
    key = session.key
    bodies: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", "/v1/sessions/s-new", {**session.terms, field: "x"}),
        ("POST", f"{invited.path}/invitations", {"slots": [A], field: "x"}),
        ("POST", "/v1/join/preview", {"code": invited.codes[A], field: "x"}),
        ("POST", "/v1/join", {**invited.joining(A), field: "x"}),
        (
            "POST",
            "/v1/join/decline",
            {"code": invited.codes[A], "state": "declined", "reason": "", field: "x"},
        ),
    ]
    member = invited.joining(A)["member"]
    told = {"address": "a@b.example", field: "x"}
    bodies.append(("POST", f"{session.path}/receivers", told))
    joining = {**invited.joining(A), "member": {**member, field: "x"}}
    bodies.append(("POST", "/v1/join", joining))
    for verb, path, body in bodies:
        refusal = api.send(verb, path, key, json=body)
        assert refusal.status_code == 422, path
        assert refusal.json()["type"] == Problem.INVALID_PARAMETERS.urn
    assert api.stored() == before


@pytest.mark.threat(70)
def test_too_many_rows_are_refused_before_any_work(api: Api) -> None:
    session = api.open(Dummy(), PARTS)
    rows = api.service.settings.max_body_bytes // 8 + 1
    member = session.member(A, shape=(rows, 3))
    before = api.stored()
    refusal = session.try_join(A, member)
    assert refusal.status_code == 422
    assert str(rows * 8) in refusal.json()["detail"]
    assert api.stored() == before


# What is stolen is of no use


@pytest.mark.threat(33)
def test_nothing_in_a_stolen_database_is_a_credential(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    with api.service.database.engine.connect() as connection:
        stolen = {
            value
            for table in Base.metadata.sorted_tables
            for row in connection.execute(sa.select(table))
            for value in row
            if isinstance(value, str) and value
        }
    with api.service.database.read() as transaction:
        secrets = [c.secret_digest for c in transaction.scalars(sa.select(Credential))]
        codes = [i.code_digest for i in transaction.scalars(sa.select(Invitation))]
    assert {len(text) for text in secrets + codes} == {64}
    assert stolen >= {*secrets, *codes}
    for text in stolen:
        for form in (text, f"ck_{text}", f"pt_{text}"):
            with_it = api.send("GET", session.path, form.encode().hex())
            assert with_it.status_code == 401
            if form.isascii() and form.isprintable():
                assert api.send("GET", session.path, form).status_code == 401
        body = {"code": text[:128].ljust(16, "x")}
        preview = api.send("POST", "/v1/join/preview", json=body)
        assert preview.status_code in {404, 422}


# Canaries

CANARY = 1234567.890625  # exact in binary


def canary_parts() -> simulation.Split:
    """Return parts with a number and with ids that can be searched for."""
    layout = Layout.lattice(2, 2)
    rows = np.random.default_rng(3).normal(size=(60, 6))
    parts = simulation.split(rows, layout, seed=1)
    planted = {}
    for slot, source in parts.data.items():
        values = matrix(source).copy()
        values[5, 1] = CANARY
        group = slot.partition("c")[0]
        ids = [f"canary-{group}-{number}" for number in range(len(values))]
        planted[slot] = MatrixSource(values, ids=ids, columns=source.columns)
    return replace(parts, data=planted)


def forms(secret: bytes | str) -> list[bytes]:
    """Return the encodings in which a secret might be stored."""
    raw = secret.encode() if isinstance(secret, str) else secret
    encoded = (base64.b64encode(raw), base64.urlsafe_b64encode(raw))
    hexadecimal = raw.hex().encode()
    return [
        raw, hexadecimal, hexadecimal.upper(), *(text.rstrip(b"=") for text in encoded)
    ]  # fmt: skip


@pytest.mark.threat(32, 33)
def test_no_row_value_no_id_and_no_secret_is_kept_by_the_analyst(
    analyst: Analyst, gather: Callable[..., Crowd]
) -> None:
    crowd = gather(
        DataCollaboration(n_clusters=2, dimensions="all_but_one"), canary_parts()
    )
    crowd.start()
    crowd.join()
    wrong = {"Authorization": "Bearer ck_canary-token"}
    session = f"{analyst.url}/v1/sessions/{crowd.session.id}"
    answers = [
        httpx.get(session, headers=wrong).text,
        httpx.post(
            f"{analyst.url}/v1/join/preview", json={"code": "canary-code-0123"}
        ).text,
        httpx.put(
            f"{session}/rounds/1/attempts/1/contribution",
            headers={**wrong, "Content-Type": MEDIA_TYPE},
            content=b"canary-body",
        ).text,
        httpx.get(f"{analyst.url}/metrics").text,
    ]
    hidden = {
        "canary": [
            *(b"canary", repr(CANARY).encode()),
            *(struct.pack(form, CANARY) for form in ("<d", ">d", "<f")),
        ],
        "key": forms(analyst.key),
        **{f"entropy of {role}": forms(key) for role, key in crowd.keys.items()},
    }
    for slot, text in crowd.invitations.items():
        invitation = invitations.Invitation.parse(text)
        hidden[f"code of {slot}"] = forms(invitation.code)
        hidden["session secret"] = forms(invitation.secret)
        identity = PartySession(crowd.home, crowd.session.id, slot).load_identity()
        assert identity.token
        hidden[f"token of {slot}"] = forms(identity.token)
    assert len(hidden) == 3 + 3 * len(crowd.layout.names) + 1
    places = {"answers": "".join(answers).encode(), **analyst.kept()}
    assert len(places) > 40
    found = [
        (what, name)
        for name, content in places.items()
        for what, texts in hidden.items()
        if any(text in content for text in texts)
    ]
    assert found == []


def test_the_search_finds_what_is_there() -> None:
    secret = bytes(range(32))
    for content in (b"x" + secret, secret.hex().encode(), base64.b64encode(secret)):
        assert any(form in content for form in forms(secret))
    parts = canary_parts()
    for slot in parts.layout.names:
        assert struct.pack("<d", CANARY) in matrix(parts.data[slot]).tobytes()
        assert any("canary" in name for name in parts.data[slot].ids or ())
