"""Requests by chance at the desk, of everybody who may be there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import httpx
import pytest
from support.analyst_process import Analyst
from support.desks import DeskBrowser

from analyst_service.credentials import Role, create_key
from analyst_service.database import Database
from analyst_service.settings import Settings
from tests.faces.desk.page_fuzzing import Ask, Send, ask_for_a_while, crawl
from tests.faces.desk.plans import opened

ROLES = ("nobody", "party", "coordinator", "administrator")
MISSING = "/sessions/-/analyst"


def administrators_key(analyst: Analyst) -> str:
    url = analyst.environment["COTERIE_DATABASE_URL"]
    settings = Settings(data_dir=analyst.data_dir, database_url=url)
    database = Database(settings.database)
    try:
        args = Role.ADMINISTRATOR, "tests", 86_400
        return database.transact(create_key, *args)[1]
    finally:
        database.close()


def come(browser: DeskBrowser, role: str, analyst: Analyst, key: str) -> str:
    """Come to the desk by a new link, with a session that forms may end; its id.

    One invitation lies at this desk, and its terms are accepted.
    """
    browser.open()
    browser.desk.connection.keep(analyst.url, analyst.key)
    invitation = opened(browser)[0]
    browser.post("/invitations", {"invitation": str(invitation)})
    place = f"/parties/{invitation.session}/{invitation.slot}"
    browser.accept(place)
    if role == "party":
        browser.desk.connection.keep("", "")
    elif role == "administrator":
        browser.desk.connection.keep(analyst.url, key)
    return invitation.session


def asks_of(browser: DeskBrowser, session: str) -> list[Ask]:
    """What pages about a session ask."""
    root = browser.desk.root
    pages = (f"/sessions/{session}", f"/parties/{session}/north", MISSING, "/")

    def get(address: str) -> httpx.Response:
        return browser.get(address, at_root=False)

    found = crawl(get, *(f"{root}{page}" for page in pages))
    return [ask for ask in found if ask.path.startswith(root)]


def sends(browser: DeskBrowser, role: str) -> Send:
    """How a role sends; nobody has another's cookie."""
    token = browser.token()
    if role == "nobody":
        browser.cookie = "coterie-desk=of-another"

    def send(ask: Ask) -> httpx.Response:
        origin = str(browser.client.base_url).rstrip("/").encode()
        return browser.send(
            ask.method,
            ask.address,
            at_root=False,
            headers={"Origin": origin, **ask.told()},  # type: ignore[dict-item]  # bytes too
            content=ask.content(token),
        )

    return send


def visits(
    browser: DeskBrowser, role: str, analyst: Analyst
) -> Callable[[], tuple[Sequence[Ask], Send]]:
    key = administrators_key(analyst)
    first = come(browser, role, analyst, key)
    asks = asks_of(browser, first)

    def visit() -> tuple[Sequence[Ask], Send]:
        session = come(browser, role, analyst, key)
        return [ask.about(first, session) for ask in asks], sends(browser, role)

    return visit


@pytest.mark.thorough
@pytest.mark.threat(161)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.quick(2)
def test_no_request_makes_a_page_of_the_desk_fail(
    stranger: DeskBrowser, analyst: Analyst, role: str
) -> None:
    lines = [f"p{n:02},{n},{n % 3}" for n in range(12)]
    (stranger.desk.tables / "rows.csv").write_text("\n".join(["id,x,y", *lines]))
    assert ask_for_a_while(visits(stranger, role, analyst)) > 0
    assert stranger.said == [], "no page has a defect"
