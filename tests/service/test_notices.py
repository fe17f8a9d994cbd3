"""Mail about sessions: who gets which notice when, and which addresses are refused."""

import secrets
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from support.analyst_process import free_port
from support.in_process import Api, ByHand, StartApi
from support.tls import certificate

from analyst_service.credentials import revoke_credential
from analyst_service.models import Notice, Receiver, Session
from analyst_service.notices import (
    RETRIES,
    Notification,
    compose_mail,
    send_due_notices,
)
from analyst_service.outbox import GRACE, NoticeEvent
from analyst_service.retention import sweep
from analyst_service.settings import is_mail_address
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS, A, B

DAY = 86_400
FROM = "analyst@coterie.example"
EVENTS = {
    "notices come here": "added",
    "your turn": "turn",
    "still waiting": "awaited",
    "it has ended": "ended",
}


@dataclass
class Mailbox:
    port: int
    refusal: str = ""
    got: list[EmailMessage] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        del server, session, options
        envelope.rcpt_tos.append(address)
        return self.refusal or "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        del server, session
        self.got.append(message_from_bytes(envelope.content, policy=default))  # type: ignore[arg-type]
        return "250 OK"

    def authenticate(self, *asked: Any) -> AuthResult:
        login = asked[-1]
        self.logins.append((login.login, login.password))
        return AuthResult(success=True)

    @property
    def settings(self) -> dict[str, Any]:
        return {"smtp_server": f"smtp+plain://127.0.0.1:{self.port}", "smtp_from": FROM}

    def events(self, to: str = "") -> list[str]:
        subjects = [each["Subject"] for each in self.got if to in each["To"]]
        return [EVENTS[subject.rpartition(": ")[2]] for subject in subjects]


@contextmanager
def mailbox(folder: Path | None = None) -> Iterator[Mailbox]:
    """Run a mail server; with a ``folder`` of a certificate it requires TLS and a login."""
    kept = Mailbox(free_port())
    options: dict[str, Any] = {}
    if folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
        options = {
            "tls_context": context,
            "require_starttls": True,
            "authenticator": kept.authenticate,
            "auth_required": True,
        }

    server = Controller(kept, hostname="127.0.0.1", port=kept.port, **options)
    server.start()
    try:
        yield kept
    finally:
        server.stop()


@pytest.fixture
def mails() -> Iterator[Mailbox]:
    with mailbox() as running:
        yield running


@pytest.fixture
def told_api(start_api: StartApi, mails: Mailbox) -> Iterator[Api]:
    with start_api(**mails.settings) as running:
        yield running


def post(session: ByHand, address: str, who: str | None = None) -> Any:
    return session.api.send(
        "POST",
        f"{session.path}/receivers",
        session.tokens[who] if who else session.key,
        json={"address": address},
    )


def leave(session: ByHand, who: str | None = None) -> str:
    """Add an address that names its receiver, and return its id."""
    answer = post(session, f"{who or 'desk'}@ward.example", who)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def listed(session: ByHand, who: str | None = None) -> list[dict[str, Any]]:
    secret = session.tokens[who] if who else session.key
    answer = session.api.send("GET", f"{session.path}/receivers", secret)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["receivers"]
    return found


def tell(api: Api) -> None:
    while send_due_notices(api.service):
        pass


def test_a_party_is_told_its_turn_that_it_is_awaited_and_the_end(
    told_api: Api, mails: Mailbox
) -> None:
    api = told_api
    answered = api.open(Dummy(), PARTS).join()
    leave(answered, B)
    answered.answer(B)
    session = api.open(Dummy(), PARTS).join(turn=False)
    leave(session, A)
    tell(api)
    assert mails.events() == ["added", "added"]
    mails.got.clear()
    api.turn()
    tell(api)
    assert mails.events() == [], "a program that runs answers by itself"
    api.clock.forward(GRACE.total_seconds())
    tell(api)
    tell(api)
    assert mails.events() == ["turn"]
    api.clock.forward(DAY / 2)
    tell(api)
    assert mails.events() == ["turn", "awaited"], "and nothing to who has answered"
    session.cancel()
    tell(api)
    assert mails.events() == ["turn", "awaited", "ended"]


def test_a_coordinator_is_told_who_is_awaited_and_a_party_is_not(
    told_api: Api, mails: Mailbox
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS)
    leave(session)
    session.join(A)
    api.clock.forward(3.5 * DAY)
    tell(api)
    assert mails.events() == ["added", "awaited"]
    assert f"for: {B}." in mails.got[1].get_content()
    session.join(B)
    session.answer(B)
    api.clock.forward(DAY / 2)
    tell(api)
    assert f"for: {A}." in mails.got[-1].get_content()
    leave(session, A)
    api.clock.forward(DAY)
    api.turn()
    tell(api)
    # of different receivers, which are told side by side
    assert sorted(mails.events()[-3:]) == ["added", "ended", "ended"]
    last = mails.got[-3:]
    ended = {
        mail["To"]: mail.get_content() for mail in last if "ended" in mail["Subject"]
    }
    assert f": {A}" in ended["desk@ward.example"].partition("What to do")[0]
    assert f": {A}" not in ended[f"{A}@ward.example"].partition("What to do")[0]


def test_who_waits_longer_is_told_of_the_new_deadline_alone(
    told_api: Api, mails: Mailbox
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS).join()
    leave(session, A)
    api.clock.forward(100)
    tell(api)
    body = {"deadline": "2026-03-05T00:00:00Z"}
    for _ in range(2):
        put = api.send("PUT", f"{session.path}/deadline", session.key, json=body)
        assert put.status_code == 200
    api.clock.forward(DAY)
    tell(api)
    assert mails.events() == ["added", "turn"]
    api.clock.forward(DAY)
    tell(api)
    assert mails.events() == ["added", "turn", "awaited"]


@pytest.mark.threat(124)
def test_a_mail_says_what_to_do_and_nothing_of_others(
    told_api: Api, mails: Mailbox
) -> None:
    api = told_api
    title = f"Liver-{secrets.token_hex(4)}"
    session = api.open(Dummy(), PARTS, about={"title": title})
    leave(session)
    session.join()
    leave(session, A)
    for wait in (0, GRACE.total_seconds(), DAY / 2):
        api.clock.forward(wait)
        tell(api)
    session.finish()
    tell(api)
    party = [each for each in mails.got if each["To"] == f"{A}@ward.example"]
    assert [each["Subject"] for each in party] == [
        f"Coterie: session {session.id}: {headline}" for headline in EVENTS
    ]
    for each in mails.got:
        assert each["From"] == FROM
        assert each["Auto-Submitted"] == "auto-generated"
    turn = party[1].get_content()
    assert f"coterie party run {session.id} {A} --data FILE" in turn
    desk = [each for each in mails.got if each["To"] == "desk@ward.example"]
    assert f"{A}, {B}" in desk[1].get_content()
    assert f"coterie session show {session.id}" in desk[-1].get_content()
    assert len({each["Message-ID"] for each in mails.got}) == len(mails.got)
    said = "".join(each.as_string() for each in party)
    hidden = (title, B, *session.tokens.values(), *session.codes.values())
    assert not [each for each in hidden if each in said]


def test_mail_goes_under_tls_to_a_server_that_asks_who_sends_it(
    start_api: StartApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate(tmp_path)

    def told(*, trusts: bool) -> tuple[Mailbox, str | None]:
        with mailbox(tmp_path) as strict:
            login = {
                "smtp_server": f"smtp://analyst@127.0.0.1:{strict.port}",
                "smtp_password": "of the analyst",
                "smtp_from": FROM,
            }
            if trusts:
                monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls.pem"))
            else:
                monkeypatch.delenv("SSL_CERT_FILE")
            with start_api(**login) as api:
                session = api.open(Dummy(), PARTS)
                leave(session)
                tell(api)
                return strict, listed(session)[0]["failure"]

    strict, failure = told(trusts=True)
    assert failure is None
    assert strict.logins == [(b"analyst", b"of the analyst")]
    assert len(strict.got) == 1
    # a server that shows another certificate gets neither mail nor password
    strict, failure = told(trusts=False)
    assert failure == "mail-server"
    assert (strict.logins, strict.got) == ([], [])


def test_mail_that_fails_is_tried_again_and_given_up(
    told_api: Api, mails: Mailbox
) -> None:
    api = told_api
    session = api.open(Dummy(), PARTS)
    leave(session)
    mails.refusal = "450 later"
    for delay in RETRIES:
        tell(api)
        tell(api)
        [line] = listed(session)
        assert (line["retrying"], line["failure"]) == (1, "not-taken")
        api.clock.forward(delay.total_seconds())
    tell(api)
    [line] = listed(session)
    assert (line["retrying"], line["given_up"], line["sent"]) == (0, 1, 0)
    figures = api.service.metrics.render_text().decode()
    assert 'coterie_notices_total{outcome="given-up"} 1.0' in figures
    final = api.open(Dummy(), PARTS)
    leave(final)
    mails.refusal = "550 nobody of this name"
    tell(api)
    assert listed(final)[0]["given_up"] == 1
    mails.refusal = ""
    api.clock.forward(DAY)
    tell(api)
    assert mails.got == []


@pytest.mark.threat(122)
def test_no_mail_server_is_no_error_of_ours(start_api: StartApi) -> None:
    nobody = f"smtp+plain://127.0.0.1:{free_port()}"
    with start_api(smtp_server=nobody, smtp_from=FROM) as api:
        session = api.open(Dummy(), PARTS)
        leave(session)
        tell(api)
        assert listed(session)[0]["failure"] == "mail-server"
        with patch("analyst_service.notices.compose_mail", side_effect=RuntimeError):
            for wait in RETRIES:
                api.clock.forward(wait.total_seconds())
                tell(api)
        [line] = listed(session)
        assert (line["failure"], line["given_up"]) == ("internal", 1), "not for ever"


def test_everybody_sees_and_removes_its_own_addresses_only(
    told_api: Api, mails: Mailbox
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    own = {who: leave(session, who) for who in (None, A, B)}
    for who, named in own.items():
        [line] = listed(session, who)
        assert line["id"] == named
        assert line["address"] == f"{who or 'desk'}@ward.example"
    secret = session.tokens[A]
    for each in own.values():
        path = f"{session.path}/receivers/{each}"
        assert told_api.send("DELETE", path, secret).status_code == 204
    assert listed(session, A) == []
    assert len(listed(session, B)) == len(listed(session)) == 1
    tell(told_api)
    assert len(mails.got) == 2, "who was removed hears nothing"
    with told_api.service.database.read() as transaction:
        assert transaction.get_one(Receiver, own[A]).address == ""


def test_few_addresses_are_told_and_few_were_ever_named(told_api: Api) -> None:
    session = told_api.open(Dummy(), PARTS)
    for number in range(5):
        assert post(session, f"{number}@ward.example").status_code == 201
    assert post(session, "5@ward.example").status_code == 422
    named = 5
    while post(session, "0@ward.example").status_code == 201:
        named += 1
    assert named == 20
    session.cancel()
    assert post(session, "0@ward.example").json()["state"] == "cancelled"


def test_a_notice_that_is_a_week_late_is_not_sent(
    told_api: Api, mails: Mailbox
) -> None:
    leave(told_api.open(Dummy(), PARTS))
    told_api.clock.forward(10.5 * DAY)
    tell(told_api)
    assert mails.got == []


def test_notices_are_limited_per_hour_except_the_last(
    start_api: StartApi, mails: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyst_service.notices.MAX_NOTICES_PER_HOUR", 2)
    with start_api(**mails.settings) as api:
        session = api.open(Dummy(), PARTS).join()
        leave(session, A)
        for _ in range(3):
            api.clock.forward(GRACE.total_seconds())
            tell(api)
            session.answer()
        assert mails.events() == ["added", "turn"]
        session.cancel()
        tell(api)
        assert mails.events()[-1] == "ended"


@pytest.mark.parametrize("whose", ["party", "coordinator"])
def test_whose_credential_was_revoked_hears_no_more(
    told_api: Api, mails: Mailbox, whose: str
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, A if whose == "party" else None)
    secret = session.tokens[A] if whose == "party" else session.key
    credential_id = told_api.caller(secret).credential_id
    told_api.service.database.transact(revoke_credential, credential_id)
    told_api.clock.forward(2 * DAY)
    told_api.turn()
    tell(told_api)
    assert mails.got == []


def test_what_was_deleted_is_told_and_then_forgotten(
    told_api: Api, mails: Mailbox
) -> None:
    session = told_api.open(Dummy(), PARTS).join()
    leave(session, A)
    tell(told_api)
    told_api.send("DELETE", session.path, session.key)
    tell(told_api)
    assert mails.events() == ["added", "ended"]
    sweep(told_api.service)
    rows, _ = told_api.stored()
    assert rows["receivers"] == rows["notices"] == []


def test_an_address_goes_with_its_session_after_mail_was_switched_off(
    told_api: Api,
) -> None:
    session = told_api.open(Dummy(), PARTS)
    post(session, "a@b.example")
    told_api.send("DELETE", session.path, session.key)
    told_api.clock.forward(6 * DAY)
    sweep(told_api.service)
    assert told_api.stored()[0]["receivers"] != [], "its last notice may still be sent"
    told_api.clock.forward(2 * DAY)
    sweep(told_api.service)
    assert told_api.stored()[0]["receivers"] == []


def test_the_service_sweeps_and_with_a_server_sends_mail(
    api: Api, told_api: Api, mails: Mailbox
) -> None:
    assert list(api.repeated) == ["sweeping"]
    assert list(told_api.repeated) == ["sweeping", "sending notices"]
    leave(told_api.open(Dummy(), PARTS))
    for work in told_api.repeated.values():
        work()
    assert mails.events() == ["added"]


def test_nothing_is_offered_unless_it_was_turned_on(api: Api) -> None:
    session = api.open(Dummy(), PARTS)
    path = f"{session.path}/receivers"
    offered = api.send("GET", path, session.key).json()
    assert offered == {"offered": False, "receivers": []}
    refused = post(session, "a@b.example")
    assert refused.status_code == 403
    assert refused.json()["type"] == "urn:coterie:problem:not-offered"
    assert "COTERIE_SMTP_SERVER" in refused.json()["detail"]


REFUSED = [
    *("https://hooks.example/", "http://127.0.0.1/", "file:///etc/passwd", "//h/a@b"),
    *("a@b.example\r\nBcc: c@d.example", "a@b.example\n", "a@b.example\x00"),
    *("a@b.example, c@d.example", "a@b.example>", "<a@b.example>", "a@b"),
    *('"a b"@c.example', "@c.example:a@b.example", "a%b@c@d.example", "ä@b.example"),
    *("-oQ/tmp@b.example", "a@[127.0.0.1]", "Somebody <a@b.example>"),
    "a" * 65 + "@b.example",
]


@pytest.mark.threat(120, 123)
def test_an_address_of_the_web_or_of_more_than_one_is_refused(told_api: Api) -> None:
    """The analyst connects to no address that a caller names."""
    session = told_api.open(Dummy(), PARTS)
    for address in REFUSED:
        assert not is_mail_address(address)
        assert post(session, address).status_code in {400, 422}
    assert listed(session) == []
    assert post(session, "a@b.example").status_code == 201


@pytest.mark.threat(123)
def test_a_line_break_never_gets_into_a_header(api: Api) -> None:
    now = api.clock.now()
    session = Session(name="s\r\nBcc: c@d.example", deadline=now, changed_at=now)
    notice = Notice(id="0" * 32, event=NoticeEvent.TURN.value, round=1)
    receiver = Receiver(id="1" * 32, address="a@b.example", slot=A)
    told = Notification(notice, receiver, session, [])
    with pytest.raises(ValueError, match="linefeed"):
        compose_mail(told, FROM, api.clock.now())


@pytest.mark.threat(125)
def test_of_many_senders_one_sends_each_notice(
    start_each_api: StartApi, mails: Mailbox
) -> None:
    with start_each_api(**mails.settings) as api:
        sessions = [api.open(Dummy(), PARTS) for _ in range(12)]
        for session in sessions:
            leave(session)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: tell(api), range(4)))
    ids = [each["Message-ID"] for each in mails.got]
    assert len(ids) == len(set(ids)) == len(sessions)
