"""The page to sign of a terms sheet, in lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from coterie_pages.formatting import (
    LEVELS,
    agreement_sentence,
    by_level,
    page_facts,
    sent_sentences,
)
from coterie_pages.models import TermsSheet

_WIDTH = 80


def page_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the page to be signed, as lines of at most 80 characters or one word."""
    yield sheet.title
    yield "=" * min(_WIDTH, len(sheet.title))
    yield from _pairs(
        ("session", sheet.session),
        ("your place", sheet.slot),
        *((label.lower(), text) for label, text in page_facts(sheet)),
    )
    yield from _section("What is sent", sent_sentences(sheet))
    yield from _section("Who reads what", (f"{e.who}: {e.what}" for e in sheet.learns))
    yield from _write_heading("Risks")
    for level, of_level in by_level(sheet.risks):
        yield LEVELS[level]
        for risk in of_level:
            yield from _wrap(f"{risk.sentence} ({risk.code})", "  ", hanging=True)
    yield ""
    yield f"SHA-256 of this sheet: {sheet.consent}"


def signature_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the lines for a signature on the printed sheet."""
    yield from _write_heading("Signed")
    yield from _wrap(agreement_sentence(sheet))
    yield f"  {sheet.consent}"
    for label in ("Name", "Place, date", "Signature"):
        yield ""
        yield f"{label + ' ':_<{_WIDTH}}"


def _write_heading(text: str) -> Iterator[str]:
    yield ""
    yield text
    yield "-" * len(text)


def _section(heading: str, items: Iterable[str]) -> Iterator[str]:
    lines = [line for item in items for line in _wrap(item, hanging=True)]
    if lines:
        yield from _write_heading(heading)
        yield from lines


def _wrap(text: str, indent: str = "", *, hanging: bool = False) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _pairs(*pairs: tuple[str, str]) -> Iterator[str]:
    for name, value in pairs:
        if value:
            yield from textwrap.wrap(
                value,
                _WIDTH,
                initial_indent=f"{name:<15}",
                subsequent_indent=" " * 15,
                break_long_words=False,
            )
