"""Pages: whole, quiet, and harmless anyone who wrote what is in them."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from support import page_models

from clustering_protocols.common.limits import CONTROLS
from coterie_pages.models import RunReport, SessionReport, TermsSheet
from coterie_pages.pages import render_html

Model = TermsSheet | RunReport | SessionReport
MODELS: dict[str, Model] = {
    "terms": page_models.sheet(),
    "run": page_models.run_report(),
    "empty run": page_models.empty_run(),
    "session": page_models.session_report(),
    "empty session": page_models.empty_session(),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
KINDS = {"terms-sheet", "run-report", "session-report"}
CLOSED = {"level", "reach"}  # fields that hold one word of a closed list
XSS = "</title></style></svg>\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}"


def tree(html: str) -> ElementTree.Element:
    """The page as another parser reads it: it is well-formed XML too."""
    first, _, rest = html.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def poisoned(value: Any) -> Any:
    """The same value with every text a hostile one, but for what says which model it is."""
    if isinstance(value, str):
        return XSS if value and value not in KINDS else value
    if isinstance(value, dict):
        return {
            key: item if key in CLOSED else poisoned(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [poisoned(item) for item in value]
    return value


def hostile(model: Model) -> Model:
    values = poisoned(model.model_dump())
    if values.get("told"):  # names, too, are what a protocol says
        values["told"] = {XSS + name: said for name, said in values["told"].items()}
    if isinstance(model, SessionReport):
        values["state"] = model.state
    return type(model).model_validate(values)


@every_model
def test_a_page_says_its_title_and_refers_to_nothing_outside(model: Model) -> None:
    root = tree(render_html(model))
    assert root.attrib == {"lang": "en"}
    [heading] = root.iter("h1")
    assert heading.text == model.title
    assert model.title in str(next(root.iter("title")).text)
    [policy] = [e for e in root.iter("meta") if e.get("http-equiv")]
    assert policy.attrib == {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    }
    assert not list(root.iter("script"))
    for each in root.iter():
        assert not [name for name in each.attrib if name.startswith("on")]
        for name in ("src", "srcset", "action", "data", "poster", "style"):
            assert name not in each.attrib
        reference = each.get("href", "#")
        assert reference.startswith("#") or reference == "data:,"
    [style] = root.iter("style")
    assert not re.search(r"url\(|@import|expression", str(style.text))


@every_model
def test_hostile_texts_are_shown_and_change_no_element(model: Model) -> None:
    """Titles, names, levels, reasons: anyone who wrote them wrote text."""
    bad = tree(render_html(hostile(model)))
    good = tree(render_html(model))
    assert Counter(e.tag for e in bad.iter()) == Counter(e.tag for e in good.iter())
    [heading] = bad.iter("h1")
    assert heading.text == XSS
    assert "{{7*7}}" in render_html(hostile(model))


def test_what_turns_the_direction_of_text_is_shown_as_an_escape() -> None:
    seat = page_models.seats()[0]
    turned = seat.model_copy(update={"title": "ab\u202ecd\x1b[2J"})
    report = page_models.run_report().model_copy(update={"seats": (turned,)})
    html = render_html(report)
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert r"ab\u202ecd\u001b[2J" in html


def test_no_text_that_a_browser_would_obey_passes_for_printable() -> None:
    """The escaping looks at other texts alone."""
    obeyed = re.findall(f"[{CONTROLS}]", "".join(map(chr, range(0x10000))))
    assert len(obeyed) > 60
    assert not any(each.isprintable() for each in obeyed)


@every_model
def test_a_page_can_be_read_aloud_and_reached_by_keys(model: Model) -> None:
    root = tree(render_html(model))
    levels = [int(e.tag[1]) for e in root.iter() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = Counter(e.get("id") for e in root.iter() if e.get("id"))
    assert not [name for name, count in ids.items() if count > 1]
    assert all(str(link.get("href"))[1:] in ids for link in root.iter("a"))
    for table in root.iter("table"):
        assert table[0].tag == "caption"
        assert "".join(table[0].itertext()).strip()
        assert all(each.get("scope") in {"col", "row"} for each in table.iter("th"))
        assert len({len(row) for row in table.iter("tr")}) == 1
    for each in root.iter("div"):
        if each.get("class") == "wide":
            assert (each.get("tabindex"), each.get("role")) == ("0", "region")
            assert each.get("aria-label")
    for svg in root.iter("svg"):
        title, told = svg[0], svg[1]
        assert (title.tag, told.tag, svg.get("role")) == ("title", "desc", "img")
        assert svg.get("aria-labelledby") == f"{title.get('id')} {told.get('id')}"
        assert title.text
        assert told.text


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def palettes() -> Iterator[dict[str, str]]:
    """Colours on light screens, on dark ones, and on paper."""
    [style] = tree(render_html(MODELS["terms"])).iter("style")
    for block in re.findall(r":root \{(.*?)\}", str(style.text), re.DOTALL):
        yield dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))


def test_texts_and_marks_stand_out_on_screens_and_on_paper() -> None:
    found = list(palettes())
    assert len(found) == 3
    for colours in found:
        for name in ("ink", "soft", "accent", "warn", "good"):
            for ground in ("paper", "pale"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for number in range(8):
            assert contrast(colours[f"c{number}"], colours["paper"]) >= 3


def test_numbers_on_a_heat_map_can_be_read() -> None:
    root = tree(render_html(page_models.run_report()))
    svg = next(
        e
        for e in root.iter("svg")
        if e.get("aria-labelledby", "").startswith("profile")
    )
    cells = [e for e in svg.iter() if e.get("fill")]
    boxes, texts = cells[::2], cells[1::2]
    assert len(boxes) > 20
    for box, text in zip(boxes, texts, strict=True):
        assert (box.tag, text.tag) == ("rect", "text")
        assert contrast(str(box.get("fill")), str(text.get("fill"))) >= 4.5


def test_a_time_says_its_zone() -> None:
    at = page_models.left()[0].at
    assert isinstance(at, datetime)
    assert "2026-03-02 09:30:00 UTC" in render_html(page_models.run_report())
