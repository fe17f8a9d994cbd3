"""Requests by chance at the analyst's pages, of everybody who may come there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from support.browsing import Browser
from support.databases import each_on_a_database
from support.page_fuzzing import Ask, Send, ask_for_a_while, crawl

from analyst_service.auth.service import Role
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A = PARTS.layout.names[0]
ROLES = ("nobody", "party", "coordinator", "administrator")


def visitor(api: Api, role: str, session: ByHand) -> tuple[Browser, str]:
    """A browser of a role, and the token that its forms carry."""
    browser = Browser(api)
    if role == "party":  # its token is no key of pages
        browser.cookies["coterie-visit"] = session.tokens[A]
    if role in {"nobody", "party"}:
        return browser, "none"
    key = session.key if role == "coordinator" else api.key(Role.ADMINISTRATOR)
    browser.sign_in(key)
    return browser, browser.token()


def opened(api: Api) -> ByHand:
    session = api.open(Dummy(), PARTS).join()
    session.answer(A, turn=False)
    return session


@pytest.fixture(scope="module")
def crawled(shared_api: Api) -> tuple[str, list[Ask]]:
    """A session, and what all pages about it ask."""
    session = opened(shared_api)
    asks: list[Ask] = []
    for role in ("coordinator", "administrator"):
        browser, _ = visitor(shared_api, role, session)
        asks += crawl(browser.get, f"/ui/sessions/{session.id}", "/ui/sign-in")
    return session.id, [ask for ask in asks if ask.path.startswith("/ui")]


def visit(
    api: Api, role: str, crawled: tuple[str, list[Ask]]
) -> tuple[Sequence[Ask], Send]:
    """Open a session that forms may end, and come to its pages."""
    session = opened(api)
    browser, token = visitor(api, role, session)

    def send(ask: Ask) -> httpx.Response:
        own = {"Origin": str(api.client.base_url).encode(), **browser._headers({})}
        answer = api.send(
            ask.method,
            ask.address,
            headers={**own, **ask.told()},  # type: ignore[dict-item]  # bytes too
            content=ask.content(token),
        )
        api.client.cookies.clear()
        return answer

    was, asks = crawled
    return [ask.about(was, session.id) for ask in asks], send


@pytest.mark.thorough
@pytest.mark.threat(160)
@each_on_a_database("role", list(ROLES), "shared_api")
def test_no_request_makes_a_page_of_the_analyst_fail(
    shared_api: Api, role: str, crawled: tuple[str, list[Ask]]
) -> None:
    assert ask_for_a_while(lambda: visit(shared_api, role, crawled)) > 10
