"""The terms sheet in lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from coterie_pages.formatting import (
    LEVELS,
    PERSONAL_DATA,
    agreement_sentence,
    by_level,
    frequency,
    name_institution,
    page_facts,
    section_sentences,
    sent_sentences,
    span,
)
from coterie_pages.models import (
    DictionaryFields,
    Message,
    NamedInstitution,
    PlannedSlot,
    Step,
    TermsSheet,
)

_WIDTH = 80


def page_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the page to sign, at most 80 wide but for keys and addresses."""
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


def annex_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield the terms in full."""
    yield from _write_heading("Annex: the terms in full")
    yield f"terms {sheet.digest}"
    yield from _section("Who invites", _people(sheet))
    yield from _section("Who takes part", map(_slot_text, sheet.places))
    yield from _section("What is done", _method(sheet))
    yield from _write_heading("The risks in detail")
    for risk in sheet.risks:
        yield risk.code
        if risk.measured:
            yield from _wrap(f"Measured: {risk.measured}", "    ")
        yield from _wrap(f"Removed by: {risk.remedy} {risk.detail}", "    ")
    yield from _write_heading("What will be sent, and in what form")
    for number, step in enumerate(sheet.steps, 1):
        yield from _step(number, step)
    for group in sheet.dictionary:
        label = "Your columns" if group.own else f"Columns of group {group.column + 1}"
        yield from _section(f"{label} ({', '.join(group.slots)})", _fields(group))
    yield from _section("Deadlines and guards", _limits(sheet))
    yield from _section("Parameters", _parameters(sheet))


def signature_lines(sheet: TermsSheet) -> Iterator[str]:
    """Yield what somebody signs who prints the sheet."""
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


def _people(sheet: TermsSheet) -> Iterator[str]:
    if sheet.coordinator is not None:
        yield f"coordinator: {_key(sheet.coordinator)}"
    if sheet.url or sheet.analyst is not None:
        key = "" if sheet.analyst is None else sheet.analyst.fingerprint
        yield f"analyst: {', '.join(filter(None, [sheet.url, key]))}"
    if sheet.you is not None:
        yield f"you: {_key(sheet.you)}"


def _key(institution: NamedInstitution) -> str:
    return f"{name_institution(institution)}, {institution.fingerprint}"


def _slot_text(slot: PlannedSlot) -> str:
    institution = "open: anyone who holds the invitation may sit there"
    if slot.expected is not None:
        institution = f"expected: {_key(slot.expected)}"
    name = f"{slot.slot} ({slot.title})" if slot.title else slot.slot
    own = ", your place" * slot.own
    return (
        f"{name}{own}, row group {slot.row + 1}, column group {slot.column + 1}; "
        f"{institution}"
    )


def _method(sheet: TermsSheet) -> Iterator[str]:
    yield f"{sheet.protocol_title} ({sheet.protocol} v{sheet.versions.protocol})"
    yield sheet.summary
    yield from (sentence for _, sentence in section_sentences(sheet))


def _step(number: int, step: Step) -> Iterator[str]:
    repeats = ", again for each number of clusters" * step.each_run
    yield f"{number:2} {step.name}{repeats}"
    for kind in step.asked:
        how_often = f", {frequency(kind)}".removesuffix(", once")
        yield from _message("to the analyst", kind.answer, how_often)
    for message in step.sealed:
        yield from _message("sealed to other parties", message, "")
    for message in step.results:
        yield from _message("comes back to those it is for", message, "")


def _message(receiver: str, message: Message, how_often: str) -> Iterator[str]:
    sentence = message.sentence or "a completion message" * (not message.items)
    head = (
        f"{receiver}{how_often}: {message.kind}{f' – {sentence}' if sentence else ''}"
    )
    yield from _wrap(head, "   ", hanging=True)
    for item in message.items:
        yield from _wrap(f"{item.name}: {item.form}", "       ", hanging=True)


def _fields(group: DictionaryFields) -> Iterator[str]:
    for field in group.fields:
        details = (field.form, field.range, field.unit, field.title, field.preparation)
        yield f"{field.name}: {', '.join(filter(None, details))}"


def _limits(sheet: TermsSheet) -> Iterator[str]:
    yield f"join within {span(sheet.join_within)} of the session's opening"
    yield f"answer each round within {span(sheet.answer_within)}"
    yield f"each party brings at least {sheet.least_rows} rows"
    yield f"what is stored, and until when: {PERSONAL_DATA}"


def _parameters(sheet: TermsSheet) -> Iterator[str]:
    usual = []
    for parameter in sheet.parameters:
        line = f"{parameter.name} = {parameter.value}"
        if parameter.usual:
            usual.append(line)
        else:
            yield line
    if usual:
        yield f"Defaults: {'; '.join(usual)}"
