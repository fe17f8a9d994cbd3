"""Who may look at the desk: one visitor, from this machine, by a link that opens once."""

from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.in_process import HandClock

from clustering_protocols.common.errors import StorageFull
from coterie_pages.served_pages import HEADERS
from party_sdk.desk import server
from party_sdk.desk.gate import MAX_BYTES
from party_sdk.home.disk_room import disk_full_error
from party_sdk.home.store import HomeStore

INVITATION = {"invitation": "no invitation"}
FORMS = (
    "/invitations",
    "/leave",
    "/parties/s/r1c1/table/order",
    "/parties/s/r1c1/answer",
)


@pytest.mark.threat(110)
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "https://127.0.0.1:8462", "http://127.0.0.1:9"],
)
def test_a_form_of_another_site_changes_nothing_at_the_desk(
    browser: DeskBrowser, path: str, origin: str
) -> None:
    refused = browser.post(path, INVITATION, Origin=origin)
    assert refused.status_code == 403
    assert "another site" in texts(refused)
    assert browser.get("/").status_code == 200  # the visit continues


@pytest.mark.threat(110)
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("token", ["", "0" * 64, ["a", "b"]])
def test_a_form_without_the_visit_token_changes_nothing(
    browser: DeskBrowser, path: str, token: str
) -> None:
    refused = browser.post(path, INVITATION | {"token": token})
    assert refused.status_code in {403, 422}
    assert browser.get("/").status_code == 200


@pytest.mark.threat(111)
def test_no_page_of_the_desk_may_be_shown_in_a_frame(browser: DeskBrowser) -> None:
    """The browser that the tests use holds every answer against all of these headers."""
    for response in (
        browser.get("/"),
        browser.get("/none"),
        browser.post("/leave", {}),
    ):
        assert response.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert HEADERS["Cache-Control"] == "no-store"


@pytest.mark.threat(112)
@pytest.mark.parametrize(
    "host",
    ["evil.example:8462", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8462.evil.example"],
)
def test_the_desk_answers_no_other_name(browser: DeskBrowser, host: str) -> None:
    for path in ("/", "/static/app.css"):
        refused = browser.get(path, Host=host)
        assert refused.status_code == 421
        assert browser.desk.root not in refused.text
    link = f"/open/{browser.desk.openings.create_token()}"
    assert browser.get(link, at_root=False, Host=host).status_code == 421
    assert browser.get("/", Host="localhost:8462").status_code == 200


@pytest.mark.threat(113)
def test_a_cookie_that_was_there_before_is_never_the_desks(
    stranger: DeskBrowser,
) -> None:
    stranger.cookie = planted = "coterie-desk=planted"
    assert stranger.get("/").status_code == 401
    stranger.open()
    assert stranger.cookie != planted
    mine = stranger.cookie
    stranger.cookie = planted
    assert stranger.get("/").status_code == 401
    stranger.cookie = mine
    assert stranger.get("/").status_code == 200


@pytest.mark.threat(115)
def test_neither_a_link_nor_a_visit_is_in_a_later_address(browser: DeskBrowser) -> None:
    opened = browser.open()
    secret = browser.cookie.partition("=")[2]
    assert opened.headers["location"] == f"{browser.desk.root}/"
    shown = browser.get("/").text
    assert secret not in shown
    addresses = [
        value
        for each in tree(browser.get("/")).iter()
        for name, value in each.attrib.items()
        if name in {"href", "src", "action"}
    ]
    assert addresses
    token = browser.token()
    assert not any(token in address or secret in address for address in addresses)
    assert "/open/" not in shown


@pytest.mark.threat(127)
def test_another_program_of_this_machine_is_sent_no_cookie(
    stranger: DeskBrowser,
) -> None:
    """Ports share cookies; a path that was drawn does not, and strangers do not read it."""
    opened = stranger.open()
    said = opened.headers["set-cookie"]
    assert f"Path={stranger.desk.root}/" in said
    assert "HttpOnly" in said
    assert "SameSite=strict" in said
    assert "Domain" not in said
    stranger.cookie = ""
    for path in ("/", "/none", "/open/none", "/static/none"):
        refused = stranger.get(path, at_root=False)
        assert refused.status_code in {401, 404}
        assert stranger.desk.root not in refused.text


@pytest.mark.threat(128)
def test_a_link_opens_once_and_the_last_one_alone(stranger: DeskBrowser) -> None:
    first, second = (
        stranger.desk.openings.create_token(),
        stranger.desk.openings.create_token(),
    )
    assert stranger.get(f"/open/{first}", at_root=False).status_code == 401
    assert stranger.get(f"/open/{second}", at_root=False).status_code == 303
    again = stranger.get(f"/open/{second}", at_root=False)
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    assert "coterie ui" in texts(again)


@pytest.mark.threat(128)
def test_a_link_is_good_for_minutes(stranger: DeskBrowser, clock: HandClock) -> None:
    token = stranger.desk.openings.create_token()
    clock.forward(5 * 60 + 1)
    assert stranger.get(f"/open/{token}", at_root=False).status_code == 401


@pytest.mark.threat(128)
def test_a_new_link_ends_the_visit_before(browser: DeskBrowser) -> None:
    before = browser.cookie
    browser.open()
    after, browser.cookie = browser.cookie, before
    assert browser.get("/").status_code == 401
    browser.cookie = after
    assert browser.get("/").status_code == 200


@pytest.mark.threat(129)
def test_a_visit_ends_when_nobody_is_there(
    browser: DeskBrowser, clock: HandClock
) -> None:
    """A page that shows itself anew is nobody."""
    for _ in range(13):
        clock.forward(5 * 60)
        response = browser.get("/", HX_Request="true")
    assert response.status_code == 401
    assert "has ended" in texts(response)
    browser.open()
    for _ in range(13):
        clock.forward(5 * 60)
        assert browser.get("/").status_code == 200


@pytest.mark.threat(129)
def test_leaving_ends_the_visit(browser: DeskBrowser) -> None:
    assert "You left the desk" in texts(browser.follow(browser.post("/leave", {})))
    assert browser.get("/").status_code == 401


@pytest.mark.threat(129)
@pytest.mark.parametrize("path", ["/", "/parties/s/r1c1", "/parties/s/r1c1/labels"])
def test_nothing_is_shown_without_a_visit(stranger: DeskBrowser, path: str) -> None:
    refused = stranger.get(path)
    assert refused.status_code == 401
    assert "coterie ui" in texts(refused)
    sent = stranger.post("/invitations", INVITATION)
    assert stranger.follow(sent).status_code == 401


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_pages_are_read_and_forms_are_sent_and_nothing_else(
    browser: DeskBrowser, method: str
) -> None:
    assert browser.send(method, "/", headers={}).status_code == 405


def test_a_form_is_bounded(browser: DeskBrowser) -> None:
    large = b"token=" + b"a" * MAX_BYTES
    assert browser.post("/invitations", large).status_code == 413
    assert browser.post("/invitations", b"\xff=").status_code == 400
    many = b"&".join([b"a=1"] * 2_001)
    assert browser.post("/invitations", many).status_code == 400
    other = {"Content-Type": "application/json"}
    assert browser.post("/invitations", b"{}", **other).status_code == 415


def test_what_is_not_there_is_a_page(browser: DeskBrowser) -> None:
    for path in ("/none", "/parties/../..", "/parties/s/r1c1", "/parties/A/%2e%2e"):
        missing = browser.get(path)
        assert missing.status_code in {404, 409}
        assert tree(missing) is not None
    assert browser.post("/none", {}).status_code == 404


def test_scripts_and_styles_are_the_frames_own(stranger: DeskBrowser) -> None:
    response = stranger.get("/static/app.css", at_root=False)
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert stranger.get("/static/../party.py", at_root=False).status_code == 404


def test_a_defect_is_a_page_and_a_line_without_values(
    browser: DeskBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "P-0001 has 41 cases"

    def broken(_: Path) -> None:
        raise RuntimeError(secret)

    monkeypatch.setattr("party_sdk.desk.party.party_list.all_parties", broken)
    response = browser.get("/")
    assert response.status_code == 500
    assert "This page failed" in texts(response)
    assert secret not in response.text
    [line] = browser.said
    assert "RuntimeError" in line
    assert secret not in line


def test_a_home_on_a_full_disk_opens_no_desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Mock(side_effect=disk_full_error(tmp_path, "Links are kept there."))
    monkeypatch.setattr(HomeStore, "transaction", full)
    with pytest.raises(StorageFull, match="This machine has no room") as raised:
        server.serve(
            tmp_path, tmp_path, port=0, idle=timedelta(1), on_open=print, say=print
        )
    assert str(tmp_path) in raised.value.detail
