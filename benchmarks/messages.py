"""Writes docs/messages.md: every error, setting and risk, each with its sentence.

    python -m benchmarks.messages

Read the page once as a stranger after a sentence has changed. A test compares it with
what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from clustering_protocols import catalogue
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.terms.session_risks import RISKS, Risk, worst_first
from clustering_protocols.terms.terms import Deadlines, Guards
from party_sdk.cli.terminal.output import exit_code

PAGE = Path(__file__).parents[1] / "docs" / "messages.md"
HEADER = ("| name | default | limits | meaning |", "|---|---|---|---|")
_ITEM: Final = 320  # characters: three lines
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z'\"`])")
_LIMITS: Final = (
    ("minimum", "from {:,}"),
    ("exclusiveMinimum", "above {:,}"),
    ("maximum", "to {:,}"),
)
_EXITS: Mapping[int, str] = {
    3: "refused locally by a guard, or because a risk is not accepted",
    4: "the session ended without a result",
    5: "the input cannot be used",
    6: "the analyst cannot be reached, or cannot answer now",
    7: "the analyst refused, or the request is not possible now",
}


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Every message"
    yield ""
    yield "`python -m benchmarks.messages` writes this page."
    yield ""
    yield "## What can go wrong"
    yield ""
    yield (
        "The service and the SDK use this closed list. A command prints the title, the "
        "expected and the actual value, and what to do, and exits with the code in the "
        "heading. The service returns the status and the name (RFC 9457)."
    )
    for end, meaning in _EXITS.items():
        yield from ("", f"### Exit code {end}: {meaning}", "")
        yield "| name | status | title | what to do |"
        yield "|---|---|---|---|"
        for each in Problem:
            if exit_code(each) == end:
                cells = (f"`{each.slug}`", str(each.status), each.title, each.remedy)
                yield f"| {' | '.join(cells)} |"
    yield from ("", "## What can be set", "")
    yield (
        "Environment variables configure the [service](administrator.md#settings). Terms set "
        "these values for a session (`session create`):"
    )
    yield from ("", *HEADER)
    yield from fields(Deadlines, "deadlines.")
    yield from fields(Guards, "guards.")
    yield from ("", "## Risks", "")
    yield (
        "A party accepts each risk of a session by name, or does not join. The terms of "
        "a session determine its risks."
    )
    groups = {"Of any session": worst_first(RISKS)}
    for name, known in catalogue.catalogue().items():
        if known.methods:
            groups[f"`{name}`"] = catalogue.protocol_risks(name)
    for name, risks in groups.items():
        yield from ("", f"### {name}", "")
        for code, risk in risks.items():
            first, *more = texts(risk)
            yield f"- `{code}`: {first}"
            yield from (f"  - {each}" for text in more for each in _pieces(text))


def fields(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield a row for each field of a model: name, default, limits, meaning."""
    for name, field in model.model_json_schema()["properties"].items():
        default = field.get("default")
        told = "" if default in (None, "") else f"`{default}`"
        limits = [form.format(field[key]) for key, form in _LIMITS if key in field]
        meaning = field.get("description", "")
        yield f"| `{prefix}{name}` | {told} | {' '.join(limits)} | {meaning} |"


def texts(risk: Risk) -> Iterator[str]:
    """Yield a risk's texts: sentence, measurement, remedy, detail, readers, level."""
    yield risk.sentence
    yield from [f"Measured: {risk.measured}"] * bool(risk.measured)
    yield f"Removed by: {risk.remedy}"
    yield from [risk.detail] * bool(risk.detail)
    yield from (f"{who}: {what}" for who, what in risk.readers)
    yield f"Level: {risk.level}."


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in items of at most three lines."""
    piece = ""
    for sentence in _SENTENCE_END.split(text):
        if piece and len(piece) + len(sentence) >= _ITEM:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".lstrip()
    yield piece


if __name__ == "__main__":
    PAGE.write_text(page())
