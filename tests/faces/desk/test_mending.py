"""A table is mended at the desk: before any invitation, and in a session."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import xlsxwriter
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.terminal import Terminal

from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.terms.schema import Schema
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.supervisor.orders import PartyOrder
from party_sdk.tables import ReadOptions, read_table
from party_sdk.tables.mapping import parse_mapping
from tests.faces.desk.plans import HOSTILE, accepted, sent

DICTIONARY = Schema.model_validate(
    {
        "fields": [
            {"name": "sex", "type": "string", "categories": ["female", "male"]},
            {"name": "age", "type": "integer"},
            {"name": "cpeptide", "title": "C-peptide", "unit": "nmol/l"},
        ]
    }
)
IDS = [f"P{n:03}" for n in range(20)]
AGES = [30 + (n * 7) % 41 for n in range(20)]


def write_book(folder: Path) -> Path:
    """A workbook: a title, two sheets, spellings, a limit, a copy and a total."""
    path = folder / "book.xlsx"
    rows: list[list[Any]] = [
        [name, "Ff"[n % 2] if n % 3 else "m", age, 0.5 + n / 10]
        for n, (name, age) in enumerate(zip(IDS, AGES, strict=True))
    ]
    rows[7][3] = "<0.1"
    rows += [rows[4], ["Total", None, None, None]]
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Auszug 2025")
        sheet.write(0, 0, "A cohort (confidential)")
        for at, row in enumerate([["Patient", "Sex", "Age", "C-Peptid"], *rows], 2):
            sheet.write_row(at, 0, row)
        book.add_worksheet("Notes").write(0, 0, "do not share")
    return path


def numbers_of_book() -> np.ndarray[Any, Any]:
    sexes = [0.0 if n % 3 else 1.0 for n in range(20)]
    peptides = [0.05 if n == 7 else 0.5 + n / 10 for n in range(20)]
    return np.column_stack([sexes, AGES, peptides])


def write_german(folder: Path) -> Path:
    """A German text of Windows: other names and words, and a line that is too short."""
    path = folder / "Süd.csv"
    lines = [
        f"{name};{'wm'[n % 2]};{age};{'k.A.' if n == 3 else '1,5'}"
        for n, (name, age) in enumerate(zip(IDS, AGES, strict=True))
    ]
    text = "\r\n".join(["PatNr;Geschlecht;Alter;C-Peptid", *lines, "Summe;;"])
    path.write_text(text, encoding="cp1252", newline="")
    return path


@pytest.fixture
def dictionary(browser: DeskBrowser) -> Path:
    path = browser.desk.tables / "study.json"
    path.write_text(DICTIONARY.model_dump_json())
    return path


def test_a_table_is_mended_before_any_invitation(
    browser: DeskBrowser, dictionary: Path
) -> None:
    path = write_book(browser.desk.tables)
    first = browser.get(f"/tables?path={path.name}")
    assert "Auszug 2025" in texts(first)
    assert "Mend it" not in texts(first), "one of two sheets is to be chosen"
    asked = f"/tables?path={path.name}&sheet=Auszug+2025"
    look = browser.get(asked)
    assert IDS[3] not in look.text
    named = browser.get(f"{asked}&id=Patient")
    assert "The first rows" in texts(named)
    assert IDS[3] not in named.text, "an id, anywhere"
    begin = {"path": path.name, "csv": "'sheet=Auszug 2025'", "id": "Patient"}
    drafted = browser.post("/tables/mapping", {**begin, "dictionary": dictionary.name})
    assert "'<0.1' (1) is not a number" in texts(drafted)
    assert IDS[3] not in drafted.text
    fields: dict[str, Any] = sent(drafted, "/tables/mapping")
    age, number = map(fields["field"].index, ("age", "cpeptide"))
    typed = {
        f"factor.{age}": "much",
        f"limits.{number}": "half",
        "omitted": "Patient = P005",
        f"written.{number}": "_,",
    }
    page = browser.post("/tables/mapping", {**fields, **typed})
    assert "age: factor" in texts(page)
    again = sent(page, "/tables/mapping")
    assert {name: again[name] for name in typed} == {k: [v] for k, v in typed.items()}
    same = {f"source.{age}": ["Age"], f"source.{number}": ["Age"]}
    page = browser.post("/tables/mapping", {**fields, **same})
    assert "'age' and 'cpeptide' come from the same column" in texts(page)
    mended = browser.post("/tables/mapping", {**fields, f"limits.{number}": "half"})
    assert "Save the mapping as a file" in texts(mended)
    assert "As the dictionary reads them" in texts(mended)
    kept = browser.post("/tables/mapping/file", sent(mended, "/mapping/file"))
    assert "attachment" in kept.headers["Content-Disposition"]
    how = ReadOptions(
        id_column="Patient",
        schema=DICTIONARY,
        mapping=parse_mapping(kept.content, "mapping.toml"),
        allow=("running-number",),
    )
    found = matrix(read_table(path, how))
    assert (found == numbers_of_book()).all()
    assert browser.said == []


def test_a_table_is_tried_at_once(browser: DeskBrowser) -> None:
    """The same labels each time, of a method and a number that are suggested."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 3)) + 12 * (np.arange(90) % 3)[:, None]
    lines = [f"k{n:03},{','.join(map(str, row))}" for n, row in enumerate(X)]
    path = browser.desk.tables / "shop.csv"
    path.write_text("\n".join(["customer,age,income,visits", *lines]))
    form = sent(browser.get("/tables?path=shop.csv"), "/trial")
    tried = browser.post("/tables/trial", form)
    assert "with 3 clusters" in texts(tried)
    assert "Nothing was sent" in texts(tried)
    assert "k001" not in tried.text
    labels = browser.post("/tables/trial/labels", sent(tried, "/trial/labels"))
    assert labels.headers["content-disposition"].endswith('"shop-labels.csv"')
    found = [line.split(",") for line in labels.text.splitlines()[1:]]
    assert len({(n % 3, label) for n, (_, label) in enumerate(found)}) == 3
    assert "nowhere" in texts(browser.post("/tables/trial", {"path": "nowhere.csv"}))
    coded = [f"{line.rpartition(',')[0]},999" for line in lines[80:]]
    rows = ["customer,age,income,visits", *lines[:80], *coded]
    path.write_text("\n".join(rows))
    assert "'visits': 999 in 10 rows" in texts(browser.post("/tables/trial", form))


def joined(
    online: Terminal, browser: DeskBrowser, dictionary: Path, *more: str
) -> tuple[str, str]:
    """Open a session and accept its sheet at the desk; its id and the party's address."""
    words = ("session", "create", "Wards", "--protocol", "llf", "--clusters", 2)
    slots = [word for n in (1, 2, 3) for word in ("--party", f"r{n}c1={n},1")]
    opened = online.json(*words, *slots, "--schema", dictionary, *more)
    invitation = Invitation.parse(opened["invitations"]["r1c1"])
    return opened["id"], accepted(browser, invitation)


def test_a_party_mends_its_table_and_takes_part(
    online: Terminal, browser: DeskBrowser, dictionary: Path
) -> None:
    path = write_german(browser.desk.tables)
    session, place = joined(online, browser, dictionary, "--missing", "drop")
    table = browser.get(f"{place}/table?path={path.name}")
    assert "There is no column" in texts(table)
    assert "Refused unless the terms" not in texts(table), "the terms hold one"
    begin = sent(table, "/table")
    drafted = browser.post(f"{place}/table/mapping", {**begin, "id": "PatNr"})
    assert "fewer cells than" in texts(drafted)
    fields: dict[str, Any] = sent(drafted, f"{place}/table/mapping")
    more = {"lines": "22", "omitted": "PatNr = Summe\nPatNr = Total"}
    fits = browser.post(f"{place}/table/mapping", {**fields, **more})
    assert "Take part with it" in texts(fits)
    assert sent(fits, f"{place}/table/mapping")["omitted"] == [more["omitted"]]
    assert IDS[3] not in fits.text
    fields = {**sent(fits, "/mapping"), "notify": ["nobody"]}
    for action in ("order", "rehearsal"):
        unread = browser.post(f"{place}/table/{action}", {**fields, "lines": "22 21"})
        assert "Mend your table" in texts(unread), "it was not read with this yet"
        assert sent(unread, "/mapping")["lines"] == ["22 21"]
        assert sent(unread, "/mapping")["notify"] == ["nobody"]
    wrong = browser.post(f"{place}/table/order", fields)
    assert "'nobody' is not a mail address" in texts(wrong)
    shown = sent(wrong, "/table")
    assert shown["mapping"] == fields["mapping"]
    assert shown["notify"] == ["nobody"]
    placed = browser.post(f"{place}/table/order", {**shown, "notify": ""})
    placed = browser.follow(placed)
    assert "queued" in texts(placed)
    order = PartyOrder(browser.desk.home, session, "r1c1").order()
    assert parse_mapping(order.table.mapping.encode(), "m").leave_out.lines == (22,)
    again = browser.get(f"{place}/table?path={path.name}")
    assert "Look at its mapping" in texts(again), "the order's mapping is kept"

    opened = online.json("session", "create", "Next quarter", "--from", session)
    place = accepted(browser, Invitation.parse(opened["invitations"]["r1c1"]))
    assert "As in Wards" in texts(browser.get(f"{place}/table"))
    offered = browser.get(f"{place}/table?again=yes")
    assert "Take part with it" in texts(offered), "the table fits as it was mended"
    browser.post(f"{place}/table/order", sent(offered, "/table"))
    repeated = PartyOrder(browser.desk.home, opened["id"], "r1c1").order()
    assert repeated.table == order.table
    assert browser.said == []


def test_mail_limits_and_mapping_follow_between_the_pages_of_a_table(
    online: Terminal, browser: DeskBrowser
) -> None:
    schema = {
        "fields": [
            {"name": "age", "type": "integer"},
            {"name": "dose", "unit": "mg"},
            {"name": "stay", "type": "integer", "role": "describe"},
        ]
    }
    dictionary = browser.desk.tables / "stays.json"
    dictionary.write_text(json.dumps(schema))
    lines = [
        f"{name},{age},{age % 7},{age % 9}" for name, age in zip(IDS, AGES, strict=True)
    ]
    path = browser.desk.tables / "stays.csv"
    path.write_text("\n".join(["patient,Age,dose,stay", *lines]))
    _, place = joined(online, browser, dictionary)
    table = browser.get(f"{place}/table?path={path.name}&seen=1&id=patient")
    drafted = browser.post(f"{place}/table/mapping", sent(table, "/table"))
    typed = {"notify": ["ward@north.example"], "allow_other_units": ["true"]}
    fields = {**sent(drafted, "/mapping"), **typed}

    def check(page: httpx.Response, ending: str) -> dict[str, list[str]]:
        form = sent(page, ending)
        assert form["id"] == ["patient"]
        assert '"from":"Age"' in form["mapping"][0]
        assert form["notify"] == typed["notify"]
        assert form["allow_other_units"][0]
        return form

    direct = browser.post(f"{place}/table/rehearsal", sent(drafted, "/mapping"))
    assert "What would be sent" in texts(direct), "an unchanged draft is not read again"
    read = browser.post(f"{place}/table/mapping", fields)
    assert "Take part with it" in texts(read)
    rehearsed = browser.post(f"{place}/table/rehearsal", check(read, "/mapping"))
    back = browser.post(f"{place}/table", check(rehearsed, "/order"))
    marked = [row for row in tree(back).iter("tr") if row.attrib.get("class")]
    assert [row[0].text for row in marked] == ["age", "dose"], "stay is only described"
    mapped = browser.post(f"{place}/table/mapping", check(back, "/table"))
    check(browser.post(f"{place}/table/mapping", check(mapped, "/mapping")), "/mapping")


def test_cells_and_names_are_shown_and_never_executed(
    browser: DeskBrowser, dictionary: Path
) -> None:
    path = browser.desk.tables / "rows.csv"
    quoted = HOSTILE.replace('"', '""')
    lines = [f'{n},"{quoted}",{n},"{quoted}"' for n in range(12)]
    path.write_text(f'id,sex,age,"{quoted}"\n' + "\n".join(lines))
    asked = {"path": path.name, "id": "id", "dictionary": dictionary.name}
    for page in (
        browser.get(f"/tables?path={path.name}&id=id"),
        browser.post("/tables/mapping", asked),
    ):
        assert "owned" in texts(page)
        assert not list(tree(page).iter("img"))
        for script in tree(page).iter("script"):
            assert set(script.attrib) == {"src", "defer"}


@pytest.mark.parametrize(
    "changed",
    [
        {"mapping": "no json"},
        {"mapping": '{"columns": {"a": {"formula": "x"}}}'},
        {"mapping": "[" * 5000},
        {"file": "/etc/passwd"},
        {"file": "/dev/zero"},
        {"dictionary": "/dev/zero"},
        {"dictionary": ""},
        {"csv": "'"},
        {"path": "nothing.csv"},
        {"path": "/dev/zero"},
        {"lines": "x"},
        {"omitted": "no sign"},
        {"factor.1": "much"},
        {"field": ["age", "age"]},
    ],
    ids=str,
)
@pytest.mark.quick(4)
def test_a_form_that_somebody_made_opens_nothing(
    browser: DeskBrowser, dictionary: Path, changed: dict[str, Any]
) -> None:
    path = write_german(browser.desk.tables)
    asked = {"path": path.name, "id": "PatNr", "dictionary": dictionary.name}
    drafted = browser.post("/tables/mapping", asked)
    fields = sent(drafted, "/tables/mapping")
    if "file" in changed:
        fields.pop("mapping")
    page = browser.post("/tables/mapping", {**fields, **changed})
    assert page.status_code == 200
    assert list(tree(page).iter("form"))
    assert "root:" not in page.text
    assert browser.said == []
