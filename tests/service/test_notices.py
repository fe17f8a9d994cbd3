"""Being told: who is told what and when, by webhook and by mail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api, ByHand, in_process
from support.tls import certificate

from analyst_service.auth.service import AuthService
from analyst_service.notices import webhooks
from analyst_service.notices.sender import RETRIES, Sender
from analyst_service.storage.models import Notice, Receiver
from analyst_service.transactions.outbox import GRACE
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.service.receivers import Hook, Mailbox, hook, mailbox

StartApi = Callable[..., AbstractContextManager[Api]]

LAYOUT = Layout.lattice(2)
PARTS = simulation.split(np.random.default_rng(0).normal(size=(40, 3)), LAYOUT, seed=1)
A, B = LAYOUT.names
DAY = 86_400
HERE = {
    "notices_webhooks": True,
    "notices_http": True,
    "notices_internal": "127.0.0.0/8",
    "smtp_host": "127.0.0.1",
    "smtp_from": "analyst@coterie.example",
    "smtp_starttls": False,
}


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as running:
        yield running


@pytest.fixture
def mails() -> Iterator[Mailbox]:
    with mailbox() as running:
        yield running


@pytest.fixture(params=BOTH_DATABASES)
def told_api(
    request: pytest.FixtureRequest,
    databases: Databases,
    tmp_path: Path,
    mails: Mailbox,
) -> Iterator[Api]:
    """An analyst that tells people inside, on each kind of database."""
    with (
        databases.current(request.param, tmp_path) as url,
        in_process(tmp_path / "api", url, smtp_port=mails.port, **HERE) as running,
    ):
        yield running


def leave(
    session: ByHand, address: str, who: str | None = None, expect: int = 201
) -> dict[str, Any]:
    """Leave an address: of a party, or of the coordinator."""
    way = "webhook" if "://" in address else "mail"
    answer = session.api.send(
        "POST",
        f"{session.path}/receivers",
        session.tokens[who] if who else session.key,
        json={"way": way, "address": address},
    )
    assert answer.status_code == expect, answer.text
    found: dict[str, Any] = answer.json()
    return found


def listed(session: ByHand, who: str | None = None) -> list[dict[str, Any]]:
    secret = session.tokens[who] if who else session.key
    answer = session.api.send("GET", f"{session.path}/receivers", secret)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["receivers"]
    return found


def tell(api: Api) -> None:
    sender = Sender(api.service)
    while sender.turn():
        pass


def events(receiver: Hook) -> list[str]:
    return [json.loads(body)["type"].partition(".")[2] for _, body in receiver.got]


def test_a_party_is_told_its_turn_that_it_is_awaited_and_the_end(
    told_api: Api, receiver: Hook
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS).join(turn=False)
    leave(session, receiver.url, A)
    tell(api)
    assert events(receiver) == ["added"]
    api.turn()
    tell(api)
    assert events(receiver) == ["added"], "a program that runs answers by itself"
    api.clock.forward(GRACE.total_seconds())
    tell(api)
    tell(api)
    assert events(receiver) == ["added", "turn"]
    api.clock.forward(DAY / 2)
    tell(api)
    assert events(receiver) == ["added", "turn", "awaited"]
    api.send("POST", f"{session.path}/cancel", session.key)
    tell(api)
    assert events(receiver) == ["added", "turn", "awaited", "ended"]
    headers, body = receiver.got[1]
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {
        "type": "session.turn",
        "timestamp": "2026-03-01T00:00:00+00:00",
        "data": {
            "session": session.id,
            "slot": A,
            "state": "collecting",
            "round": 1,
            "deadline": "2026-03-02T00:00:00+00:00",
        },
    }
    ended = json.loads(receiver.got[-1][1])["data"]
    assert ended == {
        "session": session.id,
        "slot": A,
        "state": "cancelled",
        "round": 1,
        "reason": "cancelled",
    }
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 4


def test_who_has_answered_is_not_told_that_it_is_awaited(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, receiver.url, A)
    session.answer(A)
    told_api.clock.forward(DAY / 2)
    tell(told_api)
    assert events(receiver) == ["added"]


def test_a_round_that_went_on_tells_nobody_of_the_one_before(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, receiver.url, A)
    session.answer()
    with told_api.service.database.read() as transaction:
        rounds = {n.round for n in transaction.query(Notice) if n.event != "added"}
    assert rounds == {2}, "what was overtaken is gone"
    session.finish()
    tell(told_api)
    assert sorted(events(receiver)) == ["added", "ended"]


def test_a_coordinator_is_told_who_is_awaited_and_a_party_is_not(
    told_api: Api, receiver: Hook
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS)
    leave(session, receiver.url)
    session.join(A)
    api.clock.forward(3.5 * DAY)
    tell(api)
    assert events(receiver) == ["added", "awaited"]
    told = json.loads(receiver.got[1][1])["data"]
    assert (told["state"], told["awaited"]) == ("recruiting", [B])
    assert "slot" not in told
    session.join(B)
    session.answer(B)
    api.clock.forward(DAY / 2)
    tell(api)
    assert json.loads(receiver.got[-1][1])["data"]["awaited"] == [A]
    with hook() as other:
        leave(session, other.url, A)
        api.clock.forward(DAY)
        api.turn()
        tell(api)
        for told_by, is_named in ((receiver, True), (other, False)):
            ended = json.loads(told_by.got[-1][1])
            assert ended["type"] == "session.ended"
            assert ended["data"]["reason"] == "deadline-passed"
            assert ("detail" in ended["data"]) == is_named
    assert A in json.loads(receiver.got[-1][1])["data"]["detail"]


def test_who_waits_longer_is_told_of_the_new_deadline_alone(
    told_api: Api, receiver: Hook
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS).join()
    leave(session, receiver.url, A)
    api.clock.forward(100)
    tell(api)
    body = {"deadline": "2026-03-05T00:00:00Z"}
    put = api.send("PUT", f"{session.path}/deadline", session.key, json=body)
    assert put.status_code == 200
    api.clock.forward(DAY)
    tell(api)
    assert events(receiver) == ["added", "turn"]
    api.clock.forward(DAY)
    tell(api)
    assert events(receiver) == ["added", "turn", "awaited"]


@pytest.mark.threat(121)
def test_a_webhook_is_signed_as_the_reference_library_checks_it(
    told_api: Api, receiver: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    secret = leave(session, receiver.url, A)["secret"]
    other = leave(session, receiver.url, B)["secret"]
    assert secret.startswith("whsec_")
    tell(told_api)
    (headers, body), (others, _) = sorted(
        receiver.got, key=lambda got: json.loads(got[1])["data"]["slot"]
    )
    now = told_api.clock.now()

    class Then(datetime):  # the library looks at the clock of the machine
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return now.astimezone(tz)

    monkeypatch.setattr("standardwebhooks.webhooks.datetime", Then)
    Webhook(secret).verify(body, headers)
    forged = body.replace(b"added", b"ended")
    for key, sent, text in (
        (other, headers, body),
        (secret, headers, forged),
        (secret, headers | {"webhook-id": "msg_other"}, body),
        (secret, headers | {"webhook-timestamp": "1"}, body),
        (secret, others, body),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(key).verify(text, sent)
    assert "secret" not in listed(session, A)[0]


def test_the_vector_of_the_specification_is_met() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = webhooks.build_signed_headers(
        secret, "p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_a_mail_says_what_to_do(told_api: Api, mails: Mailbox) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS, about={"title": "Liver"})
    leave(session, "desk@ward.example")
    session.join()
    leave(session, "north@ward.example", A)
    for wait in (0, GRACE.total_seconds(), DAY / 2):
        api.clock.forward(wait)
        tell(api)
    session.finish()
    tell(api)
    letters = [message_from_bytes(each.content, policy=default) for each in mails.got]
    party = [each for each in letters if each["To"] == "north@ward.example"]
    assert [each["Subject"] for each in party] == [
        f"Coterie: session {session.id}: you will be told",
        f"Coterie: session {session.id}: your turn",
        f"Coterie: session {session.id}: awaited for long",
        f"Coterie: session {session.id}: it has ended",
    ]
    for each in letters:
        assert each["From"] == "analyst@coterie.example"
        assert each["Auto-Submitted"] == "auto-generated"
        assert "Liver" not in each.as_string()
    turn = party[1].get_content()
    assert f"coterie party run {session.id} {A} --data FILE" in turn
    assert B not in turn
    desk = [each for each in letters if each["To"] == "desk@ward.example"]
    assert f"{A}, {B}" in desk[1].get_content()
    assert f"coterie session show {session.id}" in desk[-1].get_content()
    assert len({each["Message-ID"] for each in letters}) == len(letters)


def test_mail_goes_under_tls_to_a_server_that_asks_who_sends_it(
    start_api: StartApi, tmp_path: Path
) -> None:
    certificate(tmp_path)
    login = {
        "smtp_starttls": True,
        "smtp_user": "analyst",
        "smtp_password": "of the analyst",
        "notices_ca_file": tmp_path / "tls.pem",
    }
    with (
        mailbox(tmp_path) as strict,
        start_api(smtp_port=strict.port, **HERE | login) as api,
    ):
        session = api.open(Dummy(), PARTS)
        leave(session, "desk@ward.example")
        tell(api)
        assert strict.logins == [(b"analyst", b"of the analyst")]
        assert len(strict.got) == 1
    # a server that shows another certificate gets neither mail nor password
    login["notices_ca_file"] = None
    with (
        mailbox(tmp_path) as strict,
        start_api(smtp_port=strict.port, **HERE | login) as api,
    ):
        session = api.open(Dummy(), PARTS)
        leave(session, "desk@ward.example")
        tell(api)
        assert (strict.logins, strict.got) == ([], [])
        assert listed(session)[0]["failure"] == "mail-server"


# Failures


def test_a_receiver_that_fails_is_tried_again_and_given_up(
    told_api: Api, receiver: Hook
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS)
    leave(session, receiver.url)
    receiver.status = 500
    for delay in RETRIES:
        tell(api)
        tell(api)
        [line] = listed(session)
        assert (line["retrying"], line["failure"]) == (1, "not-taken")
        api.clock.forward(delay.total_seconds())
    tell(api)
    [line] = listed(session)
    assert (line["retrying"], line["given_up"], line["sent"]) == (0, 1, 0)
    assert len(receiver.got) == len(RETRIES) + 1
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    figures = api.service.metrics.text().decode()
    assert 'coterie_notices_total{outcome="given-up",way="webhook"} 1.0' in figures
    api.clock.forward(DAY)
    tell(api)
    assert len(receiver.got) == len(RETRIES) + 1


def test_a_receiver_that_is_back_gets_what_waited(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS)
    leave(session, receiver.url)
    receiver.status = 503
    tell(told_api)
    receiver.status = 200
    told_api.clock.forward(RETRIES[0].total_seconds())
    tell(told_api)
    [line] = listed(session)
    assert (line["sent"], line["retrying"], line["failure"]) == (1, 0, None)


def test_mail_that_is_refused_for_good_is_not_tried_again(
    told_api: Api, mails: Mailbox
) -> None:
    session = told_api.open(Dummy(), PARTS)
    leave(session, "nobody@ward.example")
    mails.refusal = "450 later"
    tell(told_api)
    assert listed(session)[0]["retrying"] == 1
    mails.refusal = "550 nobody of this name"
    told_api.clock.forward(RETRIES[0].total_seconds())
    tell(told_api)
    assert listed(session)[0]["given_up"] == 1


# Who may be told, and for how long


def test_everybody_sees_and_removes_its_own_addresses_only(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    own = {who: leave(session, receiver.url, who)["id"] for who in (None, A, B)}
    for who, named in own.items():
        [line] = listed(session, who)
        assert line["id"] == named
        assert line["address"] == f"http://127.0.0.1:{receiver.port}/…"
    secret = session.tokens[A]
    for each in own.values():
        path = f"{session.path}/receivers/{each}"
        assert told_api.send("DELETE", path, secret).status_code == 204
    assert listed(session, A) == []
    assert len(listed(session, B)) == len(listed(session)) == 1
    tell(told_api)
    assert len(receiver.got) == 2, "who was removed hears nothing"
    with told_api.service.database.read() as transaction:
        assert transaction.get_one(Receiver, own[A]).address == ""


def test_an_address_that_is_left_again_has_a_new_secret(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS)
    first, second = (leave(session, receiver.url) for _ in range(2))
    assert first["secret"] != second["secret"]
    assert [line["id"] for line in listed(session)] == [second["id"]]
    tell(told_api)
    assert len(receiver.got) == 1


def test_few_addresses_are_told_and_few_were_ever_named(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS)
    for number in range(5):
        leave(session, f"{receiver.url}/{number}")
    leave(session, f"{receiver.url}/5", expect=422)
    named = 5
    while True:
        found = told_api.send(
            "POST",
            f"{session.path}/receivers",
            session.key,
            json={"way": "webhook", "address": f"{receiver.url}/0"},
        )
        if found.status_code == 422:
            break
        named += 1
    assert named == 20


def test_notices_are_limited_per_hour_except_the_last(
    start_api: StartApi, receiver: Hook
) -> None:
    with start_api(**HERE, notices_per_hour=2) as api:
        session = api.open(Dummy(), PARTS).join()
        leave(session, receiver.url, A)
        for _ in range(3):
            api.clock.forward(GRACE.total_seconds())
            tell(api)
            session.answer()
        assert events(receiver) == ["added", "turn"]
        api.send("POST", f"{session.path}/cancel", session.key)
        tell(api)
        assert events(receiver)[-1] == "ended"


@pytest.mark.parametrize("whose", ["party", "coordinator"])
def test_whose_credential_was_revoked_hears_no_more(
    told_api: Api, receiver: Hook, whose: str
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, receiver.url, A if whose == "party" else None)
    with told_api.service.database.write() as transaction:
        auth = AuthService(transaction, told_api.clock)
        secret = session.tokens[A] if whose == "party" else session.key
        auth.revoke(auth.authenticate(f"Bearer {secret}").credential_id)
    told_api.clock.forward(2 * DAY)
    told_api.turn()
    tell(told_api)
    assert receiver.got == []


def test_what_was_deleted_is_told_and_then_forgotten(
    told_api: Api, receiver: Hook
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, receiver.url, A)
    tell(told_api)
    told_api.send("DELETE", session.path, session.key)
    tell(told_api)
    assert events(receiver) == ["added", "ended"]
    rows, _ = told_api.stored()
    assert rows["receivers"] == rows["notices"] == []


def test_nothing_is_offered_unless_it_was_turned_on(api: Api) -> None:
    session = api.open(Dummy(), PARTS)
    path = f"{session.path}/receivers"
    assert api.send("GET", path, session.key).json() == {"ways": [], "receivers": []}
    for way, address, named in (
        ("webhook", "https://x.example", "COTERIE_NOTICES_WEBHOOKS"),
        ("mail", "a@b.example", "COTERIE_SMTP_HOST"),
    ):
        body = {"way": way, "address": address}
        refused = api.send("POST", path, session.key, json=body)
        assert refused.status_code == 403
        assert refused.json()["type"] == "urn:coterie:problem:not-offered"
        assert named in refused.json()["detail"]


def test_what_was_turned_off_is_sent_no_more(
    start_api: StartApi, receiver: Hook
) -> None:
    with start_api(**HERE) as api:
        session = api.open(Dummy(), PARTS)
        leave(session, receiver.url)
    with start_api(**HERE | {"notices_webhooks": False}) as api:
        tell(api)
        assert receiver.got == []


def test_a_session_that_is_over_takes_no_address(told_api: Api, receiver: Hook) -> None:
    session = told_api.open(Dummy(), PARTS)
    told_api.send("POST", f"{session.path}/cancel", session.key)
    leave(session, receiver.url, expect=410)
