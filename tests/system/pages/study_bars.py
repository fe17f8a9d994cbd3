"""What a study at the desk costs the people who click through it, beside the bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.system.pages.printing import MOST_PAGES, MOST_WORDS

MOST_CLICKS: Final = 25
MOST_SECONDS: Final = 120
MOST_QUESTIONS: Final = 3
MOST_FIELDS: Final = 15
MOST_FORMS: Final = 4


class Bar(NamedTuple):
    """What was counted, and how much it may be."""

    what: str
    figure: float
    most: int

    def __str__(self) -> str:
        return f"| {self.what} | {self.figure:g} | {self.most} |"


@dataclass(frozen=True, kw_only=True)
class StudyFigures:
    """What one study came to.

    clicks: of each person.
    fields, forms: that the coordinator fills in and sends to open the session.
    seconds: of all persons together, beside what the session and the checks took.
    questions: what each party was asked while the session ran.
    words: of the page to sign.
    pages: on which a party prints its report without the annex.
    """

    clicks: Mapping[str, int]
    fields: int
    forms: int
    seconds: float
    questions: Mapping[str, int]
    words: int
    pages: int

    def bars(self) -> Iterator[Bar]:
        """Yield each figure beside its bar."""
        for who, n in self.clicks.items():
            yield Bar(f"clicks, {who}", n, MOST_CLICKS)
        yield Bar("fields, to open the session", self.fields, MOST_FIELDS)
        yield Bar("forms sent, to open the session", self.forms, MOST_FORMS)
        yield Bar("seconds beside the session, all", round(self.seconds), MOST_SECONDS)
        for who, n in self.questions.items():
            yield Bar(f"questions while it runs, {who}", n, MOST_QUESTIONS)
        yield Bar("words on the page to sign", self.words, MOST_WORDS)
        yield Bar("printed pages of a report", self.pages, MOST_PAGES)
