"""A party's way at the desk, form by form, beside a real analyst and the command line."""

from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from support.analyst_process import wait_for
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.standing import supervise
from support.terminal import RISKS, Terminal, accepting, opened, read

from clustering_protocols.engine import Journal
from clustering_protocols.wire.states import StopReason
from party_sdk.home.clock import now
from party_sdk.party.party_session import PartySession
from party_sdk.supervisor.orders import OrderState, PartyOrder
from tests.faces.desk import plans
from tests.faces.desk.plans import agrees, sent

PLACE = "/parties/{}/r1c1"
TITLE = f"{plans.HOSTILE}&amp;"
HOSTILE = f"{TITLE}\u202e"  # which no terms may hold


@pytest.fixture
def rows(browser: DeskBrowser) -> Path:
    return table(browser, "rows.csv")


def table(browser: DeskBrowser, name: str, gap: int | None = None) -> Path:
    lines = [f"p{n:02},{'' if n == gap else n},{n % 3}" for n in range(12)]
    path = browser.desk.tables / name
    path.write_text("\n".join(["id,x,y", *lines]))
    return path


def given(browser: DeskBrowser, invitation: str) -> httpx.Response:
    return browser.follow(browser.post("/invitations", {"invitation": invitation}))


@pytest.fixture
def session(online: Terminal, browser: DeskBrowser) -> str:
    """A session whose sheet was accepted at the desk."""
    session, invitation = opened(online)
    given(browser, invitation)
    browser.accept(PLACE.format(session))
    return session


@pytest.fixture
def typed(online: Terminal) -> str:
    """A session whose sheet was accepted by a command."""
    session, invitation = opened(online)
    online("party", "run", invitation, *accepting(online, invitation))
    return session


def order_of(browser: DeskBrowser, session: str) -> PartyOrder:
    return PartyOrder(browser.desk.home, session, "r1c1")


def ordered(
    browser: DeskBrowser, session: str, path: Path, **more: str
) -> httpx.Response:
    fields = {"path": path.name, "seen": "1", "id": "id", "column": ["x", "y"], **more}
    return browser.follow(browser.post(f"{PLACE.format(session)}/table/order", fields))


def test_a_party_goes_from_its_invitation_to_its_labels(
    online: Terminal, browser: DeskBrowser, rows: Path
) -> None:
    session, invitation = opened(online)
    assert "You are not in any session yet" in texts(browser.get("/"))
    terms = given(browser, f"Dear all,\n\n  {invitation[:60]}\n{invitation[60:]}\n")
    assert "Who reads what" in texts(terms)
    assert all(texts(terms).count(code) == 2 for code in RISKS), "page and annex"
    place = PLACE.format(session)
    files = browser.follow(browser.accept(place))
    assert rows.name in texts(files)
    read_as = browser.get(f"{place}/table?path=rows.csv")
    assert "12" in texts(read_as)
    assert "11" not in [each.text for each in tree(read_as).iter("td")]  # no range yet
    wrong = browser.get(f"{place}/table?path=rows.csv&seen=1&column=id&column=x")
    assert "'id' holds words" in texts(wrong)
    fits = browser.get(f"{place}/table?path=rows.csv&seen=1&id=id&column=x&column=y")
    assert "p11" not in fits.text  # an id, anywhere
    assert "11" in [each.text for each in tree(fits).iter("td")]
    chosen = {"path": rows.name, "seen": "1", "id": "id", "column": ["x", "y"]}
    rehearsed = browser.post(f"{place}/table/rehearsal", chosen)
    assert "Nothing was sent" in texts(rehearsed)
    assert "positions" in texts(rehearsed)
    assert "p11" not in rehearsed.text
    assert "queued" in texts(ordered(browser, session, rows))
    with supervise(browser.desk.home):
        wait_for(lambda: agrees(order_of(browser, session)))
    result = browser.get(place)
    assert "Plot of your rows" in result.text
    assert "What was sent" in texts(result)
    assert next(each.text for each in tree(result).iter("option")) == "csv"
    kept = browser.desk.home / "kept.csv"
    for name in ("export?format=csv", "labels"):
        file = browser.get(f"{place}/{name}")
        assert "attachment" in file.headers["Content-Disposition"], name
        kept.write_bytes(file.content)
        ids = [line["id"] for line in read(kept)]
        assert ids == [f"p{n:02}" for n in range(12)], name
    assert browser.get(f"{place}/export?format=exe").status_code >= 400
    named = browser.follow(browser.post(f"{place}/names", {"name-0": "First <b>"}))
    assert "cluster 0: First <b>" in texts(named)
    wrong = browser.post(f"{place}/names", {"name-0": "x" * 41})
    assert "1 to 40 printable characters" in texts(wrong)
    assert "formula" not in texts(result)
    [own] = browser.desk.home.rglob("labels/*.csv")
    own.write_text('"id","label"\n"=1+1",0\n')
    assert "1 cell begins like a formula" in texts(browser.get(place))
    report = browser.get(f"{place}/report.html")
    assert "attachment" in report.headers["Content-Disposition"]
    assert "Ended" in texts(browser.get("/"))
    assert "completed" in online("party", "status").stdout
    browser.desk.own_home.forget(session, "r1c1")
    assert "forgotten" in texts(browser.get(f"{place}/terms"))
    assert browser.said == []


def test_an_invalid_invitation_is_shown_again(browser: DeskBrowser) -> None:
    typed = {"invitation": "Dear all,\nhttps://analyst.example/#coterie", "file": ""}
    page = browser.post("/invitations", typed)
    [text] = [e for e in tree(page).iter("textarea") if e.attrib["id"] == "invitation"]
    assert (text.text or "").split() == typed["invitation"].split()


def test_a_cancelled_session_is_not_tried_again(
    online: Terminal, browser: DeskBrowser, rows: Path, session: str
) -> None:
    ordered(browser, session, rows)
    online("session", "cancel", session)
    with supervise(browser.desk.home):
        wait_for(lambda: order_of(browser, session).status().is_over)
    ended = texts(browser.get(PLACE.format(session)))
    assert "cancelled" in ended
    assert "Try again unchanged" not in ended


def test_a_party_that_ended_without_a_table_is_not_asked_for_one(
    browser: DeskBrowser, session: str
) -> None:
    order = order_of(browser, session)
    assert not order.status().is_over
    order.stored.save_journal(Journal().stop("It asked twice.", StopReason.REFUSED))
    assert "name your table" not in texts(browser.get("/"))
    assert browser.get(PLACE.format(session)).status_code == 200


def test_a_party_that_stopped_for_good_is_not_tried_again(
    browser: DeskBrowser, rows: Path, session: str
) -> None:
    ordered(browser, session, rows)
    order, place = order_of(browser, session), PLACE.format(session)
    order.update_status(state=OrderState.FAILED, ended_at=now())
    assert "Try again unchanged" in texts(browser.get(place))
    order.stored.save_journal(Journal().stop("It asked twice.", StopReason.REFUSED))
    assert "Try again unchanged" not in texts(browser.get(place))


def test_another_sheet_than_the_one_that_is_shown_is_not_accepted(
    online: Terminal, browser: DeskBrowser
) -> None:
    session, invitation = opened(online)
    given(browser, invitation)
    place = PLACE.format(session)
    for sheet in ("", "0" * 64):
        response = browser.follow(browser.post(f"{place}/terms", {"sheet": sheet}))
        assert "The accepted sheet does not belong" in texts(response)
    assert not PartySession(browser.desk.home, session, "r1c1").exists
    assert browser.get(place).headers["location"].endswith("/terms")


def test_findings_say_lines_and_what_to_do(browser: DeskBrowser, session: str) -> None:
    gaps = table(browser, "gaps.csv", gap=4)
    assert "line 6, x: empty" in texts(ordered(browser, session, gaps))
    assert order_of(browser, session).status().state is not OrderState.RUNNING
    for path, said in {"none.csv": "none.csv", "": "Name a table"}.items():
        fields = {"path": path, "seen": "1", "column": "x"}
        place = f"{PLACE.format(session)}/table/order"
        assert said in texts(browser.post(place, fields)), path


def test_after_a_withdrawal_what_leaves_is_asked_and_a_no_ends_it(
    browser: DeskBrowser, rows: Path, session: str
) -> None:
    place, order = PLACE.format(session), order_of(browser, session)
    browser.post(f"{place}/consent", {})
    ordered(browser, session, rows)
    with supervise(browser.desk.home):
        wait_for(order.question)
        asked = order.question()
        assert asked is not None
        shown = browser.get(place)
        assert "everything else that the sheet lists" in texts(shown)
        assert "<title>(!) Waiting for you: " in shown.text
        assert "Waiting for you" in texts(browser.get("/"))
        said = browser.post(f"{place}/answer", {"question": asked.id})
        assert "Answer yes or no" in texts(said)
        no = {"question": asked.id, "answer": "no", "reason": "too much"}
        browser.post(f"{place}/answer", no)
        assert "answered already" in texts(browser.post(f"{place}/answer", no))
        wait_for(lambda: order.status().is_over)
    ended = texts(browser.get(place))
    assert "too much" in ended
    assert "Try again unchanged" in ended
    assert "queued" in texts(browser.follow(browser.post(f"{place}/again", {})))


def test_the_desk_goes_on_where_the_command_line_stopped(
    online: Terminal, browser: DeskBrowser, rows: Path, typed: str
) -> None:
    assert "continues here once it has a table" in texts(browser.get("/"))
    place = PLACE.format(typed)
    assert rows.name in texts(browser.follow(browser.get(place)))
    assert "Continue" in texts(browser.get(f"{place}/terms"))
    ordered(browser, typed, rows, notify="desk@ward.example, night@ward.example")
    stored = order_of(browser, typed).order()
    assert stored.notify == ("desk@ward.example", "night@ward.example")
    again = browser.get(f"{place}/table?path=rows.csv&seen=1&id=id&column=x&column=y")
    assert sent(again, "/table")["notify"] == [" ".join(stored.notify)]
    assert typed in online("party", "status").stdout
    # and the reverse
    columns = ("--columns", "x,y", "--labels", online.folder / "labels.csv")
    own = ("--data", rows, "--id-column", "id", *columns)
    online("party", "run", typed, "r1c1", *own)
    assert "complete" in texts(browser.get(f"{place}/report"))


def test_a_party_of_the_command_line_declines_at_the_desk(
    online: Terminal, browser: DeskBrowser, typed: str
) -> None:
    declined = browser.post(f"{PLACE.format(typed)}/decline", {"reason": "too late"})
    assert "You withdrew this order: too late" in texts(browser.follow(declined))
    assert "too late" in online("session", "show", typed).stdout


def test_a_session_of_the_command_line_that_was_cancelled_leads_to_its_report(
    online: Terminal, browser: DeskBrowser, rows: Path, typed: str
) -> None:
    online("session", "cancel", typed)
    own = ("--data", rows, "--id-column", "id")
    online("party", "run", typed, "r1c1", *own, expect=4)
    page = texts(browser.follow(browser.get(PLACE.format(typed))))
    assert "cancelled" in page
    assert "you may still join" not in page


@pytest.mark.threat(114)
def test_what_others_wrote_is_shown_at_the_desk_and_never_run(
    online: Terminal, browser: DeskBrowser
) -> None:
    """Titles, purposes, reasons, names of files and columns: each page is XML still."""
    words = ("session", "create", TITLE, "--purpose", TITLE)
    document = online.json(*words, "--protocol", "dummy")
    session, [invitation] = document["id"], document["invitations"].values()
    place = PLACE.format(session)
    path = table(browser, f"{HOSTILE.replace('/', '|')}.csv")
    path.write_text(path.read_text().replace("x", HOSTILE.replace('"', ""), 1))
    pages = [given(browser, invitation), browser.follow(browser.accept(place))]
    pages.append(browser.get(f"{place}/table?{urlencode({'path': path.name})}"))
    pages.append(
        browser.post(f"{place}/table/order", {"path": path.name, "id": HOSTILE})
    )
    pages.append(browser.follow(browser.post(f"{place}/decline", {"reason": HOSTILE})))
    pages.append(browser.get("/"))
    pages.append(browser.post("/invitations", {"file": HOSTILE}))
    for page in pages:
        assert "owned" in texts(page)
        assert "\u202e" not in page.text
        elements = list(tree(page).iter())
        scripts = [each.attrib for each in elements if each.tag == "script"]
        assert all(set(each) == {"src", "defer"} for each in scripts)
        assert not [each for each in elements if each.tag == "img"]
        names = [name for each in elements for name in each.attrib]
        assert not [name for name in names if name.startswith("on")]
