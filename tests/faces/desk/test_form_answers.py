"""Every form of the desk is answered at an address that can be asked for again."""

import os
from dataclasses import replace
from urllib.parse import urlencode

import httpx
import pytest
from starlette.responses import HTMLResponse
from support.analyst_process import Analyst
from support.browsing import FORM, texts
from support.desks import DeskBrowser

from party_sdk.desk.form_answers import ANSWER_PARAMETER, MAX_ANSWERS, FormAnswers
from party_sdk.desk.sections import SECTIONS
from party_sdk.desk.server import ROUTES
from tests.faces.desk.test_fuzzing import come

FORMS = [route.path for route in ROUTES if "POST" in (route.methods or ())]
JUNK = {
    "path": "nowhere.csv",
    "n_clusters": "x",
    "days": "-1",
    "answer": "yes",
    "question": "0",
    "do": "review",
    "url": "http://[",
    "key": "none",
    "title": "Again",
}


def sent(browser: DeskBrowser, path: str, fields: dict[str, str]) -> httpx.Response:
    """What a form comes to, before a browser continues."""
    content = urlencode({"token": browser.token(), **fields}).encode()
    origin = str(browser.client.base_url).rstrip("/")
    headers = {"Content-Type": FORM, "Origin": origin}
    return browser.send("POST", path, headers=headers, content=content)


@pytest.mark.parametrize("fields", [{}, JUNK], ids=["empty", "junk"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.quick(10)
def test_no_page_is_the_answer_to_a_form(
    desk: DeskBrowser, analyst: Analyst, form: str, fields: dict[str, str]
) -> None:
    """Shown again, a page sends nothing, and says the same."""
    session = come(desk, "coordinator", analyst, "")
    path = form.format(session=session, slot="north")
    answer = sent(desk, path, fields)
    if "content-disposition" in answer.headers:
        return
    assert answer.status_code == 303, texts(answer)
    first, again = (desk.follow(answer) for _ in range(2))
    assert first.status_code == again.status_code not in {404, 405}
    assert texts(first) == texts(again)


PATHS = ("path", "file", "dictionary", "folder", "people", "table.1", "dictionary.1")


@pytest.mark.threat(161)
@pytest.mark.parametrize("path", ["~no-such-user/x.csv", "a" * 5_000, "pipe.csv"])
def test_no_path_in_a_form_makes_the_desk_fail_or_wait(
    desk: DeskBrowser, analyst: Analyst, path: str
) -> None:
    """A pipe that nobody writes to would block whoever opens it."""
    os.mkfifo(desk.desk.tables / "pipe.csv")
    session = come(desk, "coordinator", analyst, "")
    fields = dict.fromkeys(PATHS, path) | {"do": "review", "id": "id"}
    for form in FORMS:
        if form != "/leave":
            address = form.format(session=session, slot="north")
            answer = sent(desk, address, fields)
            if answer.status_code == 303:
                answer = desk.follow(answer)
            assert answer.status_code < 500, address
    for page in ("/tables", "/sessions/-/new"):
        assert desk.get(f"{page}?{urlencode(fields)}").status_code < 500
    assert desk.said == []


def test_what_a_form_came_to_is_kept_for_this_visit_alone(browser: DeskBrowser) -> None:
    answer = sent(browser, "/invitations", {"invitation": "none"})
    kept = answer.headers["location"]
    assert "There is nothing under" not in texts(browser.get(kept, at_root=False))
    browser.open()
    gone = browser.get(kept, at_root=False)
    assert gone.headers["location"] == f"{browser.desk.root}/"
    assert browser.follow(gone).status_code == 200


def test_another_visitor_does_not_see_it(browser: DeskBrowser) -> None:
    answer = sent(browser, "/invitations", {"invitation": "none"})
    browser.cookie = "coterie-desk=of-another"
    assert browser.get(answer.headers["location"], at_root=False).status_code == 401


def test_a_form_of_an_earlier_visit_is_refused(browser: DeskBrowser) -> None:
    token = browser.token()
    browser.open()
    answer = sent(browser, "/invitations", {"token": token})
    assert ANSWER_PARAMETER in answer.headers["location"]
    assert browser.follow(answer).status_code == 403


def test_answers_are_bounded() -> None:
    kept = FormAnswers()
    names = [
        kept.store(HTMLResponse(f"page {number}")) for number in range(MAX_ANSWERS + 1)
    ]
    assert kept.find(names[0]) is None
    assert all(map(kept.find, names[1:]))
    large = [kept.store(HTMLResponse("x" * 20 * 2**20)) for _ in range(2)]
    assert [kept.find(name) is None for name in large] == [True, False]
    assert kept.find(names[-1]) is None


def test_an_answer_is_shown_on_the_nearest_page(browser: DeskBrowser) -> None:
    desk = replace(browser.desk, sections=SECTIONS)
    for path, above in (
        ("/sessions/s/a", "/sessions/s"),
        ("/tables", "/tables"),
        ("/x/y", "/"),
        ("/", "/"),
    ):
        assert desk.page_above(path) == above
