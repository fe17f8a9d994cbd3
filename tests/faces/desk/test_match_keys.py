"""Match keys at the desk: proposed and changed by a coordinator, previewed by a party."""

import csv
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support.analyst_process import wait_for
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.standing import supervise

from party_sdk.home.policy import Policy
from party_sdk.lab.synthetic_people import make_hospitals
from party_sdk.supervisor.orders import PartyOrder
from tests.faces.desk.plans import NEW, accepted, agrees, open_reviewed, plan, sent

CELLS = ("given_name", "surname", "birth_date", "sex", "postcode")


@pytest.fixture
def people(browser: DeskBrowser) -> Path:
    path = browser.desk.tables / "people.csv"
    north, _ = make_hospitals(300, 0.9, seed=3)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*CELLS, "x", "y"])
        for number, row in enumerate(north.cells):
            table.writerow([*(row[name] for name in CELLS), number % 7, number % 5])
    return path


def form(**said: Any) -> dict[str, Any]:
    places = {"slot_column": ["1", "2", "3"], "slot_row": ["1", "1", "1"]}
    return plan(**{"protocol": "pqmds", "split": "variables", **places, **said})


def test_a_party_sees_its_rows_by_key_and_admits_more(
    desk: DeskBrowser, people: Path
) -> None:
    proposed = desk.post(NEW, form(people=people.name, do="keys", screen="2"))
    [typed] = sent(proposed)["param.alignment.match_keys"]
    keys = typed.splitlines()
    review = desk.post(NEW, form(**{"param_alignment.match_keys": typed}))
    first, *_ = open_reviewed(desk, review)
    here = accepted(desk, first)
    terms = PartyOrder(Path(desk.desk.home), first.session, first.slot)

    page = desk.get(f"{here}/table?path=people.csv")
    assert "no column has to identify them" in texts(page)
    ticked = [e.get("value") for e in tree(page).iter("input") if "checked" in e.attrib]
    assert ticked == ["x", "y"], "what keys are made of is not clustered by itself"

    fields = [("path", "people.csv"), ("seen", "1"), ("column", "x"), ("column", "y")]
    page = desk.get(f"{here}/table?{urlencode(fields)}")
    assert keys[0] in texts(page)
    assert "300 rows have a value" in texts(page)
    assert f"to admit them: --guard ids_per_row={len(keys)}" in texts(page)

    chosen = {"path": "people.csv", "seen": "1", "column": ["x", "y"], "limits": "1"}
    refused = desk.post(f"{here}/table/order", {**chosen, "ids_per_row": "many"})
    assert "'ids_per_row' must be a number" in texts(refused)
    desk.post(f"{here}/table/order", {**chosen, "ids_per_row": str(len(keys))})
    order = terms.order()
    assert order.ids_per_row == len(keys)
    assert order.apply_to(Policy()).ids_per_row == len(keys)
    again = desk.get(f"{here}/table?{urlencode(fields)}")
    assert sent(again, "/table")["ids_per_row"] == [str(len(keys))]


def test_rows_linked_to_nobody_are_a_file_with_what_they_lack(
    desk: DeskBrowser,
) -> None:
    """Both parties are at this desk: of twelve people each has two for itself."""
    for place, name in enumerate(("north", "south")):
        rows = [[f"n{n}", f"19{n + 10}-01-02", n % 3, n] for n in range(2 * place, 12)]
        rows += [[f"{name}{n}", "", n, n] for n in range(2 * place)]
        lines = [
            f"surname,birth_date,{name}1,{name}2",
            *(",".join(map(str, r)) for r in rows),
        ]
        (desk.desk.tables / f"{name}.csv").write_text("\n".join(lines))
    keys = "surname + birth_date | date\nsurname | first:3 + birth_date | year"
    said = {
        "slot_name": ["north", "south"],
        "slot_title": ["", ""],
        "slot_expected": ["", ""],
        "slot_row": ["1", "1"],
        "slot_column": ["1", "2"],
        "param_alignment.match_keys": keys,
        "param_n_clusters": "2",
        "param_codebook_size": "2",
        "param_alignment.minimum_share": "0",
    }
    review = desk.post(NEW, form(**said))
    orders = []
    for each in open_reviewed(desk, review):
        here = accepted(desk, each)
        table = {
            "path": f"{each.slot}.csv",
            "seen": "1",
            "column": [f"{each.slot}1", f"{each.slot}2"],
        }
        desk.post(f"{here}/table/order", {**table, "limits": "1"})
        orders.append(PartyOrder(desk.desk.home, each.session, each.slot))
    with supervise(Path(desk.desk.home)):
        wait_for(lambda: [agrees(order) for order in orders] == [True, True])
    assert not any(order.status().trouble for order in orders)
    page = desk.get(f"/parties/{each.session}/north/report")
    assert "Rows linked to nobody" in texts(page)
    found = desk.get(f"/parties/{each.session}/north/unlinked").text
    assert found == "line,keys without a value\n2,\n3,\n"
    found = desk.get(f"/parties/{each.session}/south/unlinked").text
    assert found == "line,keys without a value\n12,1 2\n13,1 2\n"
