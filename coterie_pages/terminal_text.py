"""The signature page of a terms sheet as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from coterie_pages.formatting import (
    LEVELS,
    agreement_sentence,
    group_by_level,
    page_facts,
    sent_sentences,
)
from coterie_pages.models import TermsSheet

_WIDTH = 80


def page_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the lines of the signature page, wrapped at 80 characters."""
    yield sheet.title
    yield "=" * min(_WIDTH, len(sheet.title))
    facts = [("session", sheet.session), ("your place", sheet.slot), *page_facts(sheet)]
    for label, value in facts:
        if value:
            yield from _wrap_text(value, f"{label.lower():<15}", " " * 15)
    yield from _section("What is sent", sent_sentences(sheet))
    yield from _section("Who reads what", (f"{e.who}: {e.what}" for e in sheet.learns))
    yield from _write_heading("Risks")
    for level, of_level in group_by_level(sheet.risks):
        yield LEVELS[level]
        for risk in of_level:
            yield from _wrap_text(f"{risk.sentence} ({risk.code})", "  ", " " * 4)
    yield ""
    yield f"SHA-256 of this sheet: {sheet.consent}"


def signature_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the lines with the declaration and the space for a signature."""
    yield from _write_heading("Signed")
    yield from _wrap_text(agreement_sentence(sheet))
    yield f"  {sheet.consent}"
    for label in ("Name", "Place, date", "Signature"):
        yield ""
        yield f"{label + ' ':_<{_WIDTH}}"


def _write_heading(text: str) -> Iterator[str]:
    yield ""
    yield text
    yield "-" * len(text)


def _section(heading: str, items: Iterable[str]) -> Iterator[str]:
    lines = [line for item in items for line in _wrap_text(item, indent="  ")]
    if lines:
        yield from _write_heading(heading)
        yield from lines


def _wrap_text(text: str, begin: str = "", indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
