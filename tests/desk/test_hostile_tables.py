"""Tables that would take the machine, chosen at the desk: it says so, and continues."""

from __future__ import annotations

import resource

import pytest
from support.browsing import texts
from support.desks import DeskBrowser
from support.hostile_tables import HOSTILE, TOO_LARGE
from support.repeats import some
from support.terminal import RISKS, Terminal, opened

from party_sdk.supervisor import OrderFiles
from party_sdk.tables.files import LARGE_FILE

_OWN_GROWTH_KIB = 400 << 10


@pytest.mark.thorough
@pytest.mark.threat(163)
def test_a_desk_outlives_every_table_that_is_chosen(
    online: Terminal, browser: DeskBrowser
) -> None:
    session, invitation = opened(online)
    browser.post("/invitations", {"invitation": invitation})
    here = f"/parties/{session}/r1c1"
    browser.post(f"{here}/terms", {"risk": RISKS})
    files = OrderFiles(browser.desk.home, session, "r1c1")
    for name in some(list(HOSTILE), ci=3):
        HOSTILE[name](browser.desk.tables / name)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for choice in ("", "&seen=1&id=id&column=x"):
            page = browser.get(f"{here}/table?path={name}{choice}")
            assert page.status_code == 200
            assert LARGE_FILE in texts(page) or name not in TOO_LARGE
        order = {"path": name, "seen": "1", "id": "id", "column": ["x"]}
        assert browser.post(f"{here}/order", order).status_code == 200
        assert not files.exists or files.order().table is None
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < _OWN_GROWTH_KIB
    assert "Taking part" in texts(browser.get("/"))
