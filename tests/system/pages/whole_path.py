"""Three messy tables, and people who do nothing but click and type into pages."""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from playwright.sync_api import Locator, Page
from support.analyst_process import Analyst
from xlsxwriter import Workbook

from tests.system.pages.looking import WIDE, Look, violations

RECORD = Path(__file__).with_name("three_hospitals.json")
"""The labels that the study ends with, by slot and in row order, one letter a row.

The wire draws at random, so clusters are named by the order in which they come first.
"""
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
COLUMNS = ("age", "marker", "dose")
CENTRES = np.array([[40.0, 1.0, 10.0], [60.0, 6.0, 12.0], [75.0, 3.0, 30.0]])
SECONDS = 120_000
PICTURED = {
    "desk": "body",
    "leaves": "body",
    "variables": "ol.way",
    "choosing": "#choose",
}
"""Pages of which the docs show a picture, and what is at its top."""

NAME_A_FOLDER = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()); )
    text.data = text.data.replace(/\/\S+\/tables\b/, "/data/wards");
}"""
"""A picture shows the folder of an institution, and not that of the test."""


def rows(party: int, n_rows: int = 30) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Ids, values and the blob of each row of a party."""
    rng = np.random.default_rng(party)
    blobs = rng.integers(0, 3, n_rows)
    values = (CENTRES[blobs] + rng.normal(0, 0.3, (n_rows, 3))).round(2)
    return [f"P{party}-{n:03}" for n in range(n_rows)], values, blobs


def check_labels(labels: Mapping[str, Sequence[int]]) -> None:
    """Compare the labels of all slots, up to the names of clusters, with the record."""
    names: dict[int, str] = {}
    found = {
        slot: "".join(
            names.setdefault(label, "abcdefghij"[len(names)]) for label in each
        )
        for slot, each in labels.items()
    }
    if os.environ.get("COTERIE_WRITE_RECORDS") == "1":
        RECORD.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(RECORD.read_text(encoding="utf-8"))


def german(path: Path, party: int) -> None:
    """Semicolons, decimal commas, cp1252, and columns in another order."""
    ids, values, _ = rows(party)
    lines = ["Patient;dose;age;marker;Bemerkung"]
    for name, (age, marker, dose) in zip(ids, values, strict=True):
        cells = (f"{value:.2f}".replace(".", ",") for value in (dose, age, marker))
        lines.append(";".join([name, *cells, "größer"]))
    path.write_text("\r\n".join(lines), encoding="cp1252")


def exported(path: Path, party: int) -> None:
    """A workbook, ids in its last column."""
    ids, values, _ = rows(party)
    book = Workbook(str(path))
    sheet = book.add_worksheet("Export")
    sheet.write_row(0, 0, ["marker", "age", "dose", "Nr"])
    for line, (name, each) in enumerate(zip(ids, values, strict=True), 1):
        age, marker, dose = map(float, each)
        sheet.write_row(line, 0, [marker, age, dose, name])
    book.close()


def plain(path: Path, party: int) -> None:
    """Tabs and a mark of byte order."""
    ids, values, _ = rows(party)
    lines = ["\t".join(["id", *COLUMNS])]
    for name, each in zip(ids, values, strict=True):
        lines.append("\t".join([name, *map(str, each)]))
    path.write_text("\n".join(lines), encoding="utf-8-sig")


def pressed(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).last.click()


ON_PAPER = {"desk", "leaves", "sheet", "table", "result"}


def seen(look: Look, name: str) -> None:
    """All that tests can tell of a page; and its picture, where they are written."""
    look.seen(name)
    if name in ON_PAPER:
        look.page.emulate_media(color_scheme="dark")
        assert violations(look.page) == []
        look.page.emulate_media(media="print")
        on_paper(look.page)
        look.page.emulate_media(media="screen", color_scheme="light")
    if name in PICTURED and os.environ.get("COTERIE_WRITE_PICTURES") == "1":
        page = look.page
        page.locator(PICTURED[name]).first.evaluate("each => each.scrollIntoView()")
        page.evaluate(NAME_A_FOLDER)
        picture = "desk.png" if name == "desk" else f"desk-{name}.png"
        page.screenshot(path=PICTURES / picture)


def on_paper(page: Page) -> None:
    """Dark ink on white, and nothing to click."""
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.locator("nav, button").filter(visible=True).count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


def agreed(parties: Iterable[AtParty], until: Locator) -> None:
    """All parties say yes to each kind that they are asked about, until it is over."""
    end = time.monotonic() + SECONDS / 1000
    while not until.is_visible():
        assert time.monotonic() < end
        for party in parties:
            party.agrees()
        until.page.wait_for_timeout(100)


def first_start(look: Look, link: str, institution: str) -> Page:
    """Open a desk, and say whose it is."""
    page = look.page
    page.set_default_timeout(SECONDS)
    look.at(link.removeprefix(look.address))
    page.get_by_label("Name of your institution").fill(institution)
    seen(look, "first-start")
    pressed(page, "Save this name")
    page.get_by_text(f"This is the desk of {institution}").wait_for()
    return page


class AtCoordinator:
    """The coordinator at its desk.

    fields, forms: how many fields it fills in to open the session, and how many forms it
        sends; a value that is refused on purpose is sent once more.
    """

    def __init__(self, look: Look, link: str) -> None:
        self.look, self.fields, self.forms = look, 0, 0
        self.page = first_start(look, link, "University <i>")
        self.page.get_by_role("link", name="Coordinating").click()

    def submits(self, name: str) -> None:
        self.forms += 1
        pressed(self.page, name)

    def connect(self, analyst: Analyst) -> None:
        page = self.page
        seen(self.look, "analyst")
        page.get_by_label("Address of the analyst").fill(analyst.url)
        page.get_by_label("A coordinator's key").fill(analyst.key)
        pressed(page, "Continue")
        seen(self.look, "sessions-none")

    def advised(self) -> None:
        page = self.page
        page.get_by_role("link", name="Which method?").first.click()
        page.get_by_label("Do the parties hold the same").select_option("horizontal")
        page.get_by_label("How many parties?").fill("3")
        pressed(page, "See what fits")
        seen(self.look, "advice")
        fit = page.locator(".fit", has_text="llf, cmeans")
        fit.get_by_role("link", name="Open a session with this method").click()

    def opened(self, title: str, titles: tuple[str, ...], table: str) -> dict[str, str]:
        """Fill in the form, read the terms, open; return the invitations by slot."""
        page = self.page
        page.get_by_label(re.compile("^Title needed")).fill(title)
        page.get_by_label("Purpose").fill("Try pages with <script>alert(1)</script>")
        clusters = page.get_by_label(re.compile("^Number of clusters"))
        clusters.fill("many")
        self.fields += 4
        self.submits("Continue")
        assert clusters.get_attribute("aria-invalid") == "true"
        seen(self.look, "form-wrong")
        clusters.fill("2..4")
        page.get_by_label("How should the number").select_option("later")
        pressed(page, "Continue")
        page.get_by_role("heading", name="Who takes part").wait_for()
        for number, each in enumerate(titles, 1):
            page.get_by_label(f"Title of place {number}").fill(each)
        self.fields += len(titles)
        seen(self.look, "form-who")
        self.submits("Continue")
        page.get_by_role("heading", name="Variables", exact=True).wait_for()
        page.get_by_label("From a table of your own").select_option(table)
        self.fields += 1
        page.get_by_label("Unit of marker").wait_for()
        seen(self.look, "variables")
        self.submits("Continue")
        page.get_by_role("heading", name="Open it").wait_for()
        seen(self.look, "terms")
        self.submits("Open and make invitations")
        seen(self.look, "invitations")
        found = {}
        for section in page.locator("main section").all():
            slot = str(section.get_attribute("aria-label")).split()[-1]
            found[slot] = section.locator("textarea").input_value()
        page.get_by_role("link", name="Continue to the session").click()
        return found

    def invited_anew(self, title: str) -> str:
        page = self.page
        page.get_by_role("link", name="New invitations").click()
        page.get_by_label(title).check()
        seen(self.look, "inviting")
        pressed(page, "Make invitations")
        [box] = page.locator("textarea").all()
        invitation = box.input_value()
        page.get_by_role("link", name="Continue to the session").click()
        return invitation


class AtParty:
    """A party at a desk of its own; ``questions``: what it was asked in the run."""

    def __init__(self, look: Look, link: str, institution: str) -> None:
        self.look, self.questions = look, 0
        self.page = first_start(look, link, institution)

    def reads(self, invitation: str) -> None:
        page = self.page
        page.get_by_role("link", name="Taking part").click()
        page.get_by_label("The invitation, as you got it").fill(invitation)
        pressed(page, "Show what it is for")
        # not the heading: the page before has one too
        page.get_by_role("button", name="Accept this sheet", exact=True).last.wait_for()

    def declines(self, reason: str) -> None:
        page = self.page
        page.locator("summary", has_text="Decline").click()
        page.get_by_label("Reason, in one line").fill(reason)
        pressed(page, "Decline")
        self.look.check()

    def takes_part(self, table: str, row_name: str, *, rehearses: bool) -> None:
        page = self.page
        if rehearses:
            seen(self.look, "sheet")
        pressed(page, "Accept this sheet")
        page.get_by_role("link", name=table).click()
        self.look.check()
        page.get_by_label(f"{row_name} identifies the rows").check()
        pressed(page, "Check it against the terms")
        page.get_by_role("button", name="Take part with this table").last.wait_for()
        if rehearses:
            seen(self.look, "table")
            pressed(page, "Rehearse it first")
            page.get_by_text("Nothing was sent").first.wait_for()
            seen(self.look, "rehearsal")
        pressed(page, "Take part with this table")
        page.get_by_role("heading", name="This order").wait_for()

    def withdraws(self) -> None:
        """Take consent back; shown again, the page says so, and sends no form again."""
        page = self.page
        page.locator("summary", has_text="Withdraw consent").click()
        pressed(page, "Withdraw consent")
        page.get_by_text("You withdrew your consent on").first.wait_for()
        page.reload()
        page.get_by_text("You withdrew your consent on").first.wait_for()
        assert not page.locator("summary", has_text="Withdraw consent").count()

    def begins_to_type(self) -> None:
        """Type into the first page, which shows itself anew meanwhile, and go back."""
        page = self.page
        page.get_by_role("link", name="Taking part").click()
        page.wait_for_selector("li.asks")
        seen(self.look, "desk")
        box = page.get_by_label("The invitation, as you got it")
        box.fill("half of an invi")
        with page.expect_response(page.url):
            pass
        page.wait_for_timeout(200)
        assert box.input_value() == "half of an invi"
        page.locator("li.asks a").first.click()

    def shown_number(self) -> str:
        """The safety number that this desk asks about, as it is read to the others."""
        page = self.page
        page.get_by_role("heading", name="Do all parties see the same").wait_for()
        assert page.title().startswith("(!) Waiting for you")
        self.questions += 1
        seen(self.look, "number")
        return page.locator(".digits").inner_text()

    def compared(self) -> None:
        """Say that all others read the same number."""
        pressed(self.page, "Yes, all see this number")
        self.page.get_by_role("heading", name="Do all parties").wait_for(
            state="detached"
        )

    def agrees(self) -> None:
        """Say yes to the kind of contribution that is asked about, if any is."""
        asked = self.page.locator(".asked input[name=question]")
        if asked.count():
            question = asked.get_attribute("value")
            self.questions += 1
            seen(self.look, "leaves")
            pressed(self.page, "Yes, send it")
            answered = self.page.locator(f"input[name=question][value='{question}']")
            answered.wait_for(state="detached")

    def compares(self, rows: int) -> None:
        """Look at the own rows under each number of clusters, and go back."""
        page = self.page
        page.get_by_role("link", name="Your rows under each number").click()
        table = page.get_by_label("Your rows in 3 clusters")
        table.wait_for()
        seen(self.look, "own-runs")
        cells = table.locator("tr", has_text="Your rows").locator("td").all()
        assert sum(int(cell.inner_text()) for cell in cells) == rows
        assert table.locator("tr", has_text="marker").count() == 1
        page.get_by_role("link", name="Back").click()

    def keeps(self, name: str, path: Path) -> None:
        with self.page.expect_download() as download:
            self.page.get_by_role("link", name=name).click()
        download.value.save_as(path)

    def labels(self, path: Path) -> dict[str, int]:
        page = self.page
        while True:
            page.wait_for_selector(".asked, a:has-text('Your labels')")
            if not page.locator(".asked").count():
                break
            self.agrees()
        seen(self.look, "result")
        self.keeps("Your labels", path)
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        [name] = set(lines[0]) - {"label"}
        return {line[name]: int(line["label"]) for line in lines}
