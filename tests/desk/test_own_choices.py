"""What a party decides alone, at the desk: as a form says it, and as an order holds it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from support.browsing import texts, tree
from support.desks import DeskBrowser
from support.terminal import ACCEPT, Terminal, opened

from clustering_protocols.terms.session_risks import LIMITS, SUMS_LIMIT
from party_sdk.supervisor import OrderFiles, OrderState, Trouble

RISKS = list(ACCEPT[1::2])
TABLE = {"path": "rows.csv", "seen": "1", "id": "id", "column": ["x", "y"]}


@pytest.fixture
def files(online: Terminal, browser: DeskBrowser) -> OrderFiles:
    """The files of a party that has accepted its terms, beside a table that fits."""
    session, invitation = opened(online)
    browser.post("/invitations", {"invitation": invitation})
    browser.post(f"/parties/{session}/r1c1/terms", {"risk": RISKS})
    lines = [f"p{n:02},{n},{n % 3}" for n in range(12)]
    (browser.desk.tables / "rows.csv").write_text("\n".join(["id,x,y", *lines]))
    return OrderFiles(Path(browser.desk.home), session, "r1c1")


def place(files: OrderFiles) -> str:
    return f"/parties/{files.folder.path.parent.name}/r1c1"


def test_limits_of_one_session_are_shown_as_they_were_set(
    browser: DeskBrowser, files: OrderFiles
) -> None:
    here = place(files)
    fits = tree(browser.get(f"{here}/table?path=rows.csv&seen=1&id=id&column=x"))
    boxes = [each for each in fits.iter("input") if each.get("name") == "allow"]
    assert {box.attrib["value"] for box in boxes} == LIMITS - {SUMS_LIMIT}
    assert not any("checked" in box.attrib for box in boxes)

    given = {"limits": "1", "allow": ["allow_one_field"], SUMS_LIMIT: "0,5"}
    browser.post(f"{here}/order", {**TABLE, **given})
    assert files.order().choices == {"allow_one_field": True, SUMS_LIMIT: 0.5}

    files.tell(
        state=OrderState.FAILED,
        trouble=Trouble(
            headline="Not sent", detail="'sums_limit' is 0.5, 6 rows.", remedy=""
        ),
    )
    assert "is your own limit for this session" in texts(browser.get(here))
    again = tree(browser.get(f"{here}/table?path=rows.csv&seen=1&id=id&column=x"))
    checked = [e.get("value") for e in again.iter("input") if "checked" in e.attrib]
    assert "allow_one_field" in checked
    [share] = [e for e in again.iter("input") if e.get("name") == SUMS_LIMIT]
    assert share.attrib["value"] == "0.5"

    browser.post(f"{here}/order", {**TABLE, "limits": "1"})
    assert files.order().choices == {"allow_one_field": False, SUMS_LIMIT: 0.25}


def test_a_share_that_is_none_places_no_order(
    browser: DeskBrowser, files: OrderFiles
) -> None:
    shares = ("-0.1", "1.5", "nan", "half")
    for form, share in product(("order", "rehearsal"), shares):
        given = {**TABLE, "limits": "1", SUMS_LIMIT: share}
        page = browser.post(f"{place(files)}/{form}", given)
        assert "is a share, from 0 to 1" in texts(page)
    assert files.order().table is None
