"""New rows at the desk: chosen, summed up and taken away as a file; nothing is kept."""

from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np
import pandas as pd
import pytest
from support.analyst_process import wait_for
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.standing import supervise
from support.terminal import Terminal, read

from party_sdk.analyst_client.invitations import Invitation
from party_sdk.supervisor.orders import PartyOrder
from tests.faces.desk.plans import accepted, agrees

SLOT = "r1c1"
CREATE = ("session", "create", "Wards", "--protocol", "dc")
PARAMS = ("n_clusters=2", "predictor=true", "dimensions=all_but_one")


def patients(seed: int, n: int = 60) -> pd.DataFrame:
    """Rows of two groups, glucose in mmol/l."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "patient": [f"P-{seed}-{row}" for row in range(n)],
            "age": rng.normal(40 + 30 * group, 4).round(1),
            "glucose": rng.normal(5 + 4 * group, 0.5).round(2),
            "crp": rng.normal(20 - 8 * group, 2).round(1),
        }
    )


class Ward:
    """A party whose session has ended at the desk."""

    def __init__(self, online: Terminal, browser: DeskBrowser) -> None:
        self.browser, self.tables = browser, browser.desk.tables
        opened = online.json(*CREATE, *(f"--param={each}" for each in PARAMS))
        self.session, [invitation] = opened["id"], opened["invitations"].values()
        patients(1).to_csv(self.tables / "old.csv", index=False)
        self.place = accepted(browser, Invitation.parse(invitation))
        columns = ["age", "glucose", "crp"]
        ordered = {"path": "old.csv", "seen": "1", "id": "patient", "column": columns}
        assert browser.post(f"{self.place}/table/order", ordered).status_code == 303
        with supervise(browser.desk.home):
            order = PartyOrder(browser.desk.home, self.session, SLOT)
            wait_for(lambda: agrees(order))

    def get(self, **fields: str) -> httpx.Response:
        return self.browser.get(f"{self.place}/new-rows?{urlencode(fields)}")

    def label(self, name: str, tail: str = "", **more: str) -> httpx.Response:
        fields = {"path": name, "seen": "1", "id": "patient", **more}
        return self.browser.post(f"{self.place}/new-rows{tail}", fields)

    def write(self, name: str, frame: pd.DataFrame) -> None:
        if name.endswith(".xlsx"):
            frame.to_excel(self.tables / name, index=False)
        else:
            frame.to_csv(self.tables / name, index=False)


@pytest.fixture
def ward(online: Terminal, browser: DeskBrowser) -> Ward:
    return Ward(online, browser)


def ticked(response: httpx.Response, name: str) -> list[str]:
    return [
        each.attrib["value"]
        for each in tree(response).iter("input")
        if each.attrib.get("name") == name and "checked" in each.attrib
    ]


def test_new_rows_are_labelled_at_the_desk(
    ward: Ward, online: Terminal, tmp_path: Path
) -> None:
    ended = ward.browser.get(ward.place)
    links = [each.attrib.get("href", "") for each in tree(ended).iter("a")]
    assert f"{ward.browser.desk.root}{ward.place}/new-rows" in links
    assert "old.csv" in texts(ward.get())
    ward.write("quarter.csv", patients(2, 30))
    seen = ward.get(path="quarter.csv")
    assert ticked(seen, "id") == ["patient"], "as in the run"
    fits = ward.get(path="quarter.csv", seen="1", id="patient")
    assert "Label 30 rows" in texts(fits)
    assert "Take part" not in texts(fits)
    assert "P-2-7" not in fits.text
    before = {path for path in ward.browser.desk.home.rglob("*") if path.is_file()}
    summary = ward.label("quarter.csv")
    assert "glucose" in texts(summary)
    assert "P-2-7" not in summary.text
    labels = ward.label("quarter.csv", "/labels", ending=".csv")
    name = f"{ward.session}-{SLOT}-quarter-labels.csv"
    assert name in labels.headers["Content-Disposition"]
    online.file("desk.csv", labels.content)
    own = ("--id-column", "patient", "--data", ward.tables / "quarter.csv")
    there = online.json("party", "predict", ward.session, SLOT, *own)
    assert read(tmp_path / "desk.csv") == read(tmp_path / "labels.csv")
    assert (there["n_rows"], there["n_trained"]) == (30, 60)
    said = online("party", "predict", ward.session, SLOT, *own, "--force").stdout
    assert "outside the range of your trained rows" in said
    assert "glucose" in said
    ward.write("quarter.xlsx", patients(2, 30))
    sheet = ward.label("quarter.xlsx", "/labels", ending=".xlsx").content
    table = pd.read_excel(BytesIO(sheet), engine="calamine")
    assert list(table) == ["patient", "label", "distance", "uncertainty", "outside"]
    assert list(table["patient"]) == list(patients(2, 30)["patient"])
    after = {path for path in ward.browser.desk.home.rglob("*") if path.is_file()}
    assert before == after, "nothing is kept at home"
    assert ward.browser.said == []
