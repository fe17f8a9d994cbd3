"""From a question to labels at four desks, without one typed command."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from sklearn.metrics import adjusted_rand_score
from support.analyst_process import Analyst
from support.browsing import MOST_WORDS, page_to_sign
from support.desks import DeskProcess

from coterie import Party
from tests.system.pages.looking import looking
from tests.system.pages.printing import MOST_PAGES, count_pages
from tests.system.pages.whole_path import (
    AtCoordinator,
    AtParty,
    agreed,
    check_labels,
    exported,
    german,
    plain,
    pressed,
    rows,
    seen,
)

TITLES = ("North <b>Clinic</b>", "South & East", "Western 'Hospital'")
TABLES = {
    "r1c1": ("Nord <i>.csv", german, "Patient"),
    "r2c1": ("South.xlsx", exported, "Nr"),
    "r3c1": ("west.tsv", plain, "id"),
}
TITLE = "Wards <img src=x onerror=alert(1)>"
REASON = "Our <b>board</b> meets next week"


@pytest.fixture
def desks(tmp_path: Path) -> Iterator[dict[str, DeskProcess]]:
    """A desk with a home and a folder of tables for each, and one for the coordinator."""
    with ExitStack() as stack:
        running = {}
        for number, (name, (table, write, _)) in enumerate(
            {"coordinator": ("pilot.tsv", plain, "id"), **TABLES}.items()
        ):
            home, tables = tmp_path / name / "home", tmp_path / name / "tables"
            home.mkdir(parents=True)
            tables.mkdir()
            write(tables / table, number)
            log = tmp_path / name / "log"
            running[name] = stack.enter_context(DeskProcess(home, tables, log))
        yield running


def test_a_whole_session_needs_no_typed_command(
    browser: Browser, desks: dict[str, DeskProcess], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        analyst = stack.enter_context(Analyst(tmp_path / "analyst"))
        looks = {
            name: stack.enter_context(
                looking(browser, desk.address, accept_downloads=True)
            )
            for name, desk in desks.items()
        }
        coordinator = AtCoordinator(looks["coordinator"], desks["coordinator"].link)
        parties = {
            name: AtParty(looks[name], desks[name].link, title)
            for name, title in zip(TABLES, TITLES, strict=True)
        }
        page = coordinator.page

        coordinator.connect(analyst)
        coordinator.advised()
        invitations = coordinator.opened(TITLE, TITLES, "pilot.tsv")
        assert list(invitations) == list(TABLES)

        for slot, party in parties.items():
            party.reads(invitations[slot])
        sheet = tmp_path / "sheet.html"
        parties["r1c1"].keeps("Print for signature", sheet)
        parties["r3c1"].declines(REASON)
        declined = page.locator("tr.declined", has_text="Western")
        declined.wait_for()
        assert REASON in declined.inner_text()
        seen(coordinator.look, "declined")
        invitations["r3c1"] = coordinator.invited_anew("Western")
        parties["r3c1"].reads(invitations["r3c1"])

        for slot, party in parties.items():
            table, _, row_name = TABLES[slot]
            party.takes_part(table, row_name, rehearses=slot == "r2c1")
        [_] = {party.shown_number() for party in parties.values()}
        parties["r1c1"].withdraws()
        parties["r2c1"].begins_to_type()
        for slot in ("r1c1", "r2c1"):
            parties[slot].compared()

        state = page.locator("dl.glance dd").first
        page.locator("dl.glance dt", has_text=re.compile("^round$")).wait_for()
        analyst.kill()
        page.get_by_role("heading", name="The analyst cannot answer now").wait_for()
        coordinator.look.check()
        analyst.start()
        parties["r3c1"].compared()
        choice = page.locator("summary", has_text=re.compile("^Choose 3$"))
        agreed(parties.values(), until=choice)
        assert state.inner_text() == "choosing"
        seen(coordinator.look, "choosing")
        parties["r2c1"].compares(rows=30)
        choice.click()
        pressed(page, "Yes, 3 clusters")
        completed = page.locator("dl.glance dd", has_text="completed")
        agreed(parties.values(), until=completed)
        assert "the chain is intact" in page.inner_text("main")
        seen(coordinator.look, "completed")
        page.get_by_role("link", name="Report", exact=True).click()
        seen(coordinator.look, "report")

        found, truth = [], []
        labels = {
            slot: party.labels(tmp_path / f"{slot}.csv")
            for slot, party in parties.items()
        }
        report = tmp_path / "report.html"
        parties["r1c1"].keeps("This report as a file", report)
        figures = {
            **{f"clicks, {name}": (look.clicks, 25) for name, look in looks.items()},
            "fields to open the session": (coordinator.fields, 15),
            "forms to open the session": (coordinator.forms, 4),
            **{f"questions, {s}": (party.questions, 3) for s, party in parties.items()},
            "words of the page to sign": (
                len(page_to_sign(sheet.read_text()).split()),
                MOST_WORDS,
            ),
            "pages of a printed report": (count_pages(browser, report), MOST_PAGES),
        }
        for name, (counted, most) in figures.items():
            sys.stdout.write(f"| {name} | {counted} | {most} |\n")
        assert all(counted <= most for counted, most in figures.values())
        for number, slot in enumerate(parties, 1):
            ids, _, blobs = rows(number)
            assert list(labels[slot]) == ids
            with Party.join(invitations[slot], home=desks[slot].home) as again:
                result = again.result()
            assert list(labels[slot].values()) == result.labels.tolist()
            found += labels[slot].values()
            truth += blobs.tolist()
        assert adjusted_rand_score(truth, found) == 1
        check_labels({slot: list(each.values()) for slot, each in labels.items()})
        for slot, desk in desks.items():
            log = desk.log.read_text()
            assert "/open/" not in log
            assert not re.search(r"P\d-\d{3}", log)
            assert slot == "coordinator" or invitations[slot][-40:] not in log
        for look in looks.values():
            assert look.messages == []
            assert look.elsewhere == []
