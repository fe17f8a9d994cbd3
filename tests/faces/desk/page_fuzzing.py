"""Requests at pages by chance: what their own links and forms ask, and then a bit else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
from hypothesis import HealthCheck, given, seed, settings, strategies as st
from support.browsing import FORM, tree
from support.repeats import NIGHTLY

SECONDS: Final = 45 if NIGHTLY else 0.3
"""For how long each of the pages' visitors asks."""

TOKEN: Final = "(the token of the visit)"
_MOST_PAGES: Final = 40
_BATCH: Final = 100
_PAGES: Final = "text/html"

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Ask:
    """A request, before anything odd is done to it."""

    method: str
    path: str
    query: Fields = ()
    fields: Fields = ()
    headers: Fields = ()
    body: bytes | None = None

    def about(self, was: str, now: str) -> Ask:
        """The same request about another session."""
        return replace(self, path=self.path.replace(was, now))

    @property
    def address(self) -> str:
        return f"{self.path}?{_encoded(self.query)}" if self.query else self.path

    def content(self, token: str) -> bytes | None:
        """The body, with the token of the visit where a form carries one."""
        if self.method == "GET" or self.body is not None:
            return self.body
        fields = [
            (name, token if value == TOKEN else value) for name, value in self.fields
        ]
        return _encoded(fields).encode()

    def told(self) -> dict[str, bytes]:
        sent = (("Content-Type", FORM),) if self.method != "GET" else ()
        return {
            name: value.encode("latin-1", "replace")
            for name, value in (*sent, *self.headers)
        }


def _encoded(fields: Iterable[tuple[str, str]]) -> str:
    return urlencode(list(fields), errors="surrogatepass")


def crawl(get: Callable[[str], httpx.Response], *starts: str) -> list[Ask]:
    """All links and forms that are found from some addresses on."""
    found: dict[Ask, None] = {}
    waiting, seen = list(starts), set(starts)
    for _ in range(_MOST_PAGES):
        if not waiting:
            break
        address = waiting.pop(0)
        for ask in _asked(address, get(address)):
            found[ask] = None
            if ask.method == "GET" and ask.address not in seen:
                seen.add(ask.address)
                waiting.append(ask.address)
    return list(found)


def _asked(address: str, response: httpx.Response) -> Iterator[Ask]:
    """The page itself, where it leads, and what its forms send."""
    yield _get(address)
    if response.status_code == 303:
        yield _get(response.headers["location"])
    if not response.headers.get("content-type", "").startswith(_PAGES):
        return
    page = tree(response)
    for link in page.iter("a"):
        if (to := link.attrib.get("href", "")).startswith("/"):
            yield _get(to)
    for form in page.iter("form"):
        yield _of_form(form, address)


def _get(address: str) -> Ask:
    parts = urlsplit(address)
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    return Ask("GET", parts.path, query)


def _of_form(form: Any, address: str) -> Ask:
    fields = []
    for each in form.iter():
        if each.tag in {"input", "select", "textarea", "button"} and (
            name := each.attrib.get("name")
        ):
            value = each.attrib.get("value") or "".join(each.itertext()).strip()
            fields.append((name, TOKEN if name == "token" else value[:200]))
    to = _get(form.attrib.get("action") or address)
    if form.attrib.get("method", "get").lower() == "get":
        return replace(to, query=tuple(fields))
    return replace(to, method="POST", fields=tuple(fields))


_ODD = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "\x00",
                "a\x00b",
                "\r\nX: y",
                "..",
                "../../x",
                "%",
                "%00",
                "[",
                "http://[",
            ),
            *("-1", "0", "9" * 30, "-" + "9" * 30, "1e400", "nan", "²", "٣", "1.5"),
            *("é", "\u202e", "🦔", "\ud800", "\x7f", "x" * 3000, "null", "{}", "[]"),
            *("2026-13-99", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59"),
            *("5d", "9" * 12 + "d", "@", "#", "coterie-2/x/y", "a,b", "'\"<&>"),
        ]
    ),
    st.text(max_size=40),
)
_HEADERS = st.tuples(
    st.sampled_from(
        [
            *(
                "Origin",
                "Referer",
                "Sec-Fetch-Site",
                "Content-Type",
                "Accept",
                "Cookie",
            ),
            *("Accept-Language", "HX-Request", "If-None-Match", "Range", "Prefer"),
            *("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "Authorization"),
        ]
    ),
    _ODD.filter(lambda value: not {"\r", "\n", "\x00"} & set(value)),
)


@st.composite
def requests(draw: st.DrawFn, asks: Sequence[Ask]) -> Ask:
    """One of these requests, in most cases with up to three things that are odd."""
    ask = draw(st.sampled_from(asks))
    for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=3)):
        ask = change(draw, ask)
    return ask


def _method(draw: st.DrawFn, ask: Ask) -> Ask:
    others = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]
    return replace(ask, method=draw(st.sampled_from(others)))


def _path(draw: st.DrawFn, ask: Ask) -> Ask:
    parts = ask.path.split("/")
    at = draw(st.integers(0, len(parts)))
    odd = quote(draw(_ODD), safe="%", errors="surrogatepass")
    changed = [*parts[:at], odd, *parts[at + draw(st.integers(0, 1)) :]]
    return replace(ask, path="/" + "/".join(changed).lstrip("/"))


def _fields(draw: st.DrawFn, fields: Fields) -> Fields:
    """Another value, a field more, twice, less, or under another name."""
    if not fields:
        return ((draw(_ODD), draw(_ODD)),)
    at = draw(st.integers(0, len(fields) - 1))
    name, value = fields[at]
    others = draw(
        st.sampled_from(
            [
                *[((name, draw(_ODD)),)] * 4,
                (),
                ((name, value), (name, draw(_ODD))),
                ((draw(_ODD), value),),
            ]
        )
    )
    return (*fields[:at], *others, *fields[at + 1 :])


def _form(draw: st.DrawFn, ask: Ask) -> Ask:
    return replace(ask, fields=_fields(draw, ask.fields))


def _query(draw: st.DrawFn, ask: Ask) -> Ask:
    return replace(ask, query=_fields(draw, ask.query))


def _header(draw: st.DrawFn, ask: Ask) -> Ask:
    return replace(ask, headers=(*ask.headers, draw(_HEADERS)))


def _body(draw: st.DrawFn, ask: Ask) -> Ask:
    return replace(ask, body=draw(st.binary(max_size=100)))


_CHANGES = (_method, _path, _form, _form, _form, _query, _query, _header, _body)


Send = Callable[[Ask], httpx.Response]
Visit = Callable[[], tuple[Sequence[Ask], Send]]


def ask_for_a_while(visit: Visit) -> int:
    """Ask for :data:`SECONDS`; no answer may be a failure. Return how often was asked.

    ``visit`` is called again and again, because forms end visits and sessions. It gives
    the requests that pages make themselves, and sends one of them.
    """
    left, n_asked = float(SECONDS), 0
    for number in count():
        asks, send = visit()
        begin = time.monotonic()
        n_asked += _ask_some(number, asks, send, begin + left)
        left -= time.monotonic() - begin
        if left <= 0:
            break
    return n_asked


def _ask_some(number: int, asks: Sequence[Ask], send: Send, until: float) -> int:
    n_asked = 0

    @seed(number)
    @settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(ask=requests(asks))
    def ask_one(ask: Ask) -> None:
        nonlocal n_asked
        if time.monotonic() > until:
            return
        answer = send(ask)
        assert answer.status_code < 500, answer.text
        n_asked += 1

    ask_one()
    return n_asked
