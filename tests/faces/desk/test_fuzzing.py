"""Requests by chance at the desk, of everybody who may be there.

They are what its own links and forms ask, and in most cases up to three things odd.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, seed, settings, strategies as st
from support.analyst_process import Analyst
from support.browsing import FORM, tree
from support.desks import DeskBrowser
from support.repeats import NIGHTLY

from analyst_service.credentials import Role, create_key
from analyst_service.database import Database
from analyst_service.settings import Settings
from tests.faces.desk.plans import accepted, opened

ROLES = ("nobody", "party", "coordinator", "administrator")
SECONDS: Final = 45 if NIGHTLY else 0.3
"""For how long each role asks."""

TOKEN: Final = "(the token of the visit)"
MOST_PAGES: Final = 40
BATCH: Final = 100

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Ask:
    """A request: a page or a form as a page sends it, or something odd."""

    method: str
    path: str
    query: Fields = ()
    fields: Fields = ()
    headers: Fields = ()
    body: bytes | None = None

    @property
    def address(self) -> str:
        return f"{self.path}?{encoded(self.query)}" if self.query else self.path

    def send(self, browser: DeskBrowser, token: str) -> httpx.Response:
        """Send it, with the token of the visit where a form carries one."""
        form = [(n, token if value == TOKEN else value) for n, value in self.fields]
        is_form = self.method != "GET" and self.body is None
        told = (("Content-Type", FORM),) if self.method != "GET" else ()
        origin = ("Origin", str(browser.client.base_url).rstrip("/"))
        headers: Any = {
            name: value.encode("latin-1", "replace")
            for name, value in (origin, *told, *self.headers)
        }
        content = encoded(form).encode() if is_form else self.body
        where = {"at_root": False, "headers": headers, "content": content}
        return browser.send(self.method, self.address, **where)


def encoded(fields: Sequence[tuple[str, str]]) -> str:
    return urlencode(list(fields), errors="surrogatepass")


def crawl(browser: DeskBrowser, *starts: str) -> list[Ask]:
    """Return all links and forms of the desk that are found from some pages on."""
    found: dict[Ask, None] = {}
    waiting = [f"{browser.desk.root}{path}" for path in starts]
    seen = set(waiting)
    while waiting and len(seen) - len(waiting) < MOST_PAGES:
        address = waiting.pop(0)
        for ask in asked(address, browser.get(address, at_root=False)):
            if not ask.path.startswith(browser.desk.root):
                continue
            found[ask] = None
            if ask.method == "GET" and ask.address not in seen:
                seen.add(ask.address)
                waiting.append(ask.address)
    return list(found)


def asked(address: str, response: httpx.Response) -> Iterator[Ask]:
    """Return the page itself, where it leads, and what its forms send."""
    yield get(address)
    if response.status_code == 303:
        yield get(response.headers["location"])
    if not response.headers.get("content-type", "").startswith("text/html"):
        return
    page = tree(response)
    for link in page.iter("a"):
        yield get(link.attrib.get("href", ""))
    for form in page.iter("form"):
        fields = tuple(
            (name, TOKEN if name == "token" else value[:200])
            for name, value in values_in(form)
        )
        to = get(form.attrib.get("action") or address)
        is_get = form.attrib.get("method", "get").lower() == "get"
        more: dict[str, Any] = {"query": fields} if is_get else {"fields": fields}
        yield replace(to, method="GET" if is_get else "POST", **more)


def values_in(form: Any) -> Iterator[tuple[str, str]]:
    for each in form.iter():
        if each.tag in {"input", "select", "textarea", "button"}:
            text = "".join(each.itertext()).strip()
            if name := each.attrib.get("name"):
                yield name, each.attrib.get("value") or text


def get(address: str) -> Ask:
    parts = urlsplit(address)
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    return Ask("GET", parts.path, query)


TEXTS = (
    *("", "\x00", "a\x00b", "\r\nX: y", "..", "../../x", "%", "%00", "[", "http://["),
    *("-1", "0", "9" * 30, "-" + "9" * 30, "1e400", "nan", "²", "٣", "1.5"),
    *("é", "\u202e", "🦔", "\ud800", "\x7f", "x" * 3000, "null", "{}", "[]"),
    *("2026-13-99", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59"),
    *("5d", "9" * 12 + "d", "@", "#", "coterie-2/x/y", "a,b", "'\"<&>"),
)
HEADERS = (
    *("Origin", "Referer", "Sec-Fetch-Site", "Content-Type", "Accept", "Cookie"),
    *("Accept-Language", "HX-Request", "If-None-Match", "Range", "Prefer"),
    *("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "Authorization"),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE")
odd = st.sampled_from(TEXTS) | st.text(max_size=40)
one_line = odd.filter(lambda value: not {"\r", "\n", "\x00"} & set(value))


@st.composite
def requests(draw: st.DrawFn, asks: Sequence[Ask]) -> Ask:
    """Return one of these requests, with up to three things changed."""
    ask = draw(st.sampled_from(asks))
    for what in draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        ask = changed(draw, ask, what)
    return ask


CHANGES = ("method", "path", *("fields",) * 3, *("query",) * 2, "headers", "body")


def changed(draw: st.DrawFn, ask: Ask, what: str) -> Ask:
    value: Any
    if what == "method":
        value = draw(st.sampled_from(METHODS))
    elif what == "path":
        parts = ask.path.split("/")
        at = draw(st.integers(0, len(parts)))
        part = quote(draw(odd), safe="%", errors="surrogatepass")
        parts[at : at + draw(st.integers(0, 1))] = [part]
        value = "/" + "/".join(parts).lstrip("/")
    elif what == "headers":
        value = (*ask.headers, (draw(st.sampled_from(HEADERS)), draw(one_line)))
    elif what == "body":
        value = draw(st.binary(max_size=100))
    else:
        value = changed_fields(draw, getattr(ask, what))
    return replace(ask, **{what: value})


def changed_fields(draw: st.DrawFn, fields: Fields) -> Fields:
    """Return them with another value, a field more, twice, less, or another name."""
    if not fields:
        return ((draw(odd), draw(odd)),)
    at = draw(st.integers(0, len(fields) - 1))
    name, value = fields[at]
    other = ((name, draw(odd)),)
    others = (*(other,) * 4, (), ((name, value), *other), ((draw(odd), value),))
    return (*fields[:at], *draw(st.sampled_from(others)), *fields[at + 1 :])


def ask_some(
    number: int, asks: Sequence[Ask], send: Callable[[Ask], Any], until: float
) -> int:
    """Ask a batch, until it is too late; return how often was asked."""
    n_asked = 0

    @seed(number)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(ask=requests(asks))
    def ask_one(ask: Ask) -> None:
        nonlocal n_asked
        if time.monotonic() <= until:
            answer = send(ask)
            assert answer.status_code < 500, answer.text
            n_asked += 1

    ask_one()
    return n_asked


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
    browser.desk.connection.set_analyst(analyst.url, analyst.key)
    invitation = opened(browser)[0]
    accepted(browser, invitation)
    if role == "party":
        browser.desk.connection.set_analyst("", "")
    elif role == "administrator":
        browser.desk.connection.set_analyst(analyst.url, key)
    return invitation.session


@pytest.mark.thorough
@pytest.mark.threat(161)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.quick(2)
def test_no_request_makes_a_page_of_the_desk_fail(
    stranger: DeskBrowser, analyst: Analyst, role: str
) -> None:
    """Forms end visits and sessions: each batch has new ones."""
    lines = [f"p{n:02},{n},{n % 3}" for n in range(12)]
    (stranger.desk.tables / "rows.csv").write_text("\n".join(["id,x,y", *lines]))
    key, left, n_asked = administrators_key(analyst), float(SECONDS), 0
    first = come(stranger, role, analyst, key)
    pages = (f"/sessions/{first}", f"/parties/{first}/north", "/sessions/-/analyst")
    asks = crawl(stranger, *pages, "/")
    for number in count():
        session = come(stranger, role, analyst, key)
        token = stranger.token()
        if role == "nobody":
            stranger.cookie = "coterie-desk=of-another"
        own = [replace(a, path=a.path.replace(first, session)) for a in asks]
        begin = time.monotonic()
        n_asked += ask_some(
            number, own, lambda ask, t=token: ask.send(stranger, t), begin + left
        )
        left -= time.monotonic() - begin
        if left <= 0:
            break
    assert n_asked > 0
    assert stranger.said == [], "no page has a defect"
