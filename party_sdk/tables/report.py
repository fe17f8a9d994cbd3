"""What is said of a table: how it is read, what is wrong with it, and where."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from clustering_protocols.common.errors import InvalidData

MOST_SHOWN: Final = 10
_LEAST_UNIQUE: Final = 0.998
_NAMESAKES: Final = 4  # two pairs, in a table of any size
_LEAST_FILLED: Final = 0.05
HEADER: Final = "repeats the names of columns: delete this row"
_LONGEST_FORM: Final = 24
_LONGEST_CELL: Final = 40
_OF_ONE: Final = {
    "not levels": "not a level",
    "not numbers": "not a number",
    "not dates": "not a date",
}


class Finding(BaseModel):
    """One thing that is wrong, and where; never the value itself.

    of_cell: whether it is of the value of a cell, which a :class:`CellProblem` shows.
    """

    model_config = ConfigDict(frozen=True)

    line: int | None = None
    column: str | None = None
    what: str
    of_cell: bool = False

    def sentence(self, word: str) -> str:
        """Return the finding as people read it: ``line 9, crp: empty``."""
        line = None if self.line is None else f"{word} {self.line}"
        place = ", ".join(part for part in (line, self.column) if part)
        return f"{place}: {self.what}" if place else self.what


class CellProblem(BaseModel):
    """What is wrong with the cells of one column, value by value.

    Its values are cells: they are shown on the operator's own terminal and desk, and
    stand in no log, file or message.

    values: each with the number of its rows, the most frequent first.
    n_rows: of all, also of values that are not listed.
    line: where the first row stands.
    hint: what may mend it.
    """

    model_config = ConfigDict(frozen=True)

    column: str
    what: str
    values: tuple[tuple[str, int], ...] = Field(repr=False)
    n_rows: int
    line: int
    hint: str = ""

    def sentence(self, word: str) -> str:
        """Return it as people read it: ``sex: 'M' (161), 'f' (11) are not levels``."""
        shown = []
        for text, n in self.values[:MOST_SHOWN]:
            clean = " ".join(text.split())
            clean, more = clean[:_LONGEST_CELL], "…" * (len(clean) > _LONGEST_CELL)
            shown.append(f"{clean + more!r} ({n:,})")
        if (rest := self.n_rows - sum(n for _, n in self.values[:MOST_SHOWN])) > 0:
            shown.append(f"others ({rest:,})")
        said = f"are {self.what}"
        if len(shown) == 1:
            kind, colon, allowed = self.what.partition(";")
            said = f"is {_OF_ONE.get(kind, kind)}{colon}{allowed}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.column}: {', '.join(shown)} {said} (first: {word} {self.line}){hint}"


class ColumnReport(BaseModel):
    """How one column is read: its name, its type, and how many values it lacks.

    codes: in how many rows each text that occurs stands for no value.
    least, largest: of numbers, and of dates as ISO 8601 writes them; None of a column
    that may name the rows.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    type: str
    missing: int = 0
    codes: dict[str, int] = {}
    least: float | str | None = None
    largest: float | str | None = None

    @property
    def codes_sentence(self) -> str:
        """Return which codes stand for no value, and where; empty where none does."""
        told = [f"{code} in {n:,} row{'s' * (n > 1)}" for code, n in self.codes.items()]
        return f"{self.name}: no value is {', '.join(told)}." if told else ""

    @property
    def range(self) -> tuple[str, str]:
        """Return the least and the largest value for people; empty where not known."""
        if self.least is None or self.largest is None:
            return "", ""
        low, high = (
            each if isinstance(each, str) else f"{each:.6g}"
            for each in (self.least, self.largest)
        )
        return low, high


class KeyPreview(BaseModel):
    """A match key, and how a table's rows look by it.

    Its values are cells: they are shown on the operator's own terminal and desk, and
    stand in no log, file or message.

    n_filled: how many of the rows have a value.
    n_unique: of these, how many have one that no other row has.
    n_stand_ins: how many have none because a cell stands for no value.
    first: the values of the first rows; empty where one is missing, or shared.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    n_rows: int
    n_filled: int
    n_unique: int
    n_stand_ins: int = 0
    first: tuple[str, ...] = Field(default=(), repr=False)

    @property
    def completeness(self) -> float:
        """Return the share of the rows that have a value."""
        return self.n_filled / self.n_rows if self.n_rows else 0.0

    @property
    def uniqueness(self) -> float:
        """Return the share of the values that no other row has."""
        return self.n_unique / self.n_filled if self.n_filled else 1.0

    @property
    def serves(self) -> bool:
        """Return whether the key is proposed: rows have a value, nearly each its own."""
        n_shared = self.n_filled - self.n_unique
        nearly_unique = self.uniqueness >= _LEAST_UNIQUE or n_shared <= _NAMESAKES
        return self.completeness >= _LEAST_FILLED and nearly_unique

    @property
    def sentence(self) -> str:
        """Return its figures as people read them."""
        shown = (
            f"{self.n_filled:,} of {self.n_rows:,} rows have a value, {self.n_unique:,} "
            "of these one that no other row has"
        )
        if not self.n_stand_ins:
            return shown
        return f"{shown}; in {self.n_stand_ins:,} a cell stands for no value"

    @property
    def first_values(self) -> str:
        """Return the first values as people read them, for the operator's own screen."""
        return ", ".join(repr(value) if value else "none" for value in self.first)


class CheckReport(BaseModel):
    """How a table is read, and whether it can be.

    file: the file's name, without its folder.
    counts: what ``line`` counts: lines of a text file, rows of another.
    rows: 0 where the table cannot be read.
    not_read: rows of the file that are none of these: left out, or not readable.
    dialect: how a text file is written; ``--csv NAME=VALUE`` freezes a part of it.
    problems: at most ten; ``more_problems`` counts the others.
    cells: the problems that are of cells, by value.
    match_keys: how rows look by the match keys of a session, where these link them.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    counts: str = "line"
    rows: int = 0
    columns: tuple[ColumnReport, ...] = ()
    dialect: dict[str, Any] = {}
    problems: tuple[Finding, ...] = ()
    more_problems: int = 0
    warnings: tuple[str, ...] = ()
    not_read: int = 0
    cells: tuple[CellProblem, ...] = Field(default=(), repr=False)
    match_keys: tuple[KeyPreview, ...] = Field(default=(), repr=False)

    @property
    def counted_rows(self) -> str:
        """Return how many rows are read, of those that the file has."""
        if not self.not_read:
            return f"{self.rows} rows"
        return f"{self.rows} of {self.rows + self.not_read} rows"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all problems, those of cells by value: for the operator's own screen."""
        told = {each.column for each in self.cells}
        others = [p for p in self.problems if not (p.of_cell and p.column in told)]
        more = self.more_problems and not self.cells
        return (
            *(each.sentence(self.counts) for each in self.cells),
            *(each.sentence(self.counts) for each in others),
            *([f"{self.more_problems} more"] if more else []),
        )

    @property
    def dialect_texts(self) -> dict[str, str]:
        """Return how a text file is written, each part as people write it."""
        return {name: _format_part(part) for name, part in self.dialect.items()}

    def require_none(self) -> None:
        """Raise :class:`InvalidData` with the problems, if there are any."""
        if self.problems:
            raise self.refusal(self.problems, self.more_problems)

    def refusal(self, found: Sequence[Finding], more: int) -> InvalidData:
        """Return findings as an error that names the file, lines and columns."""
        said = _together([finding.sentence(self.counts) for finding in found], more)
        placed = any(finding.line or finding.column for finding in found)
        detail = f"{self.file}: {said}" if placed and self.file else said
        return InvalidData(detail, cells=self.sentences if self.cells else ())


def _format_part(part: Any) -> str:
    if isinstance(part, Sequence) and not isinstance(part, str):
        return " ".join(map(repr, part))
    return repr(part) if isinstance(part, str) and len(part) < 3 else str(part)


class Findings:
    """Collects findings: the first ten with their places, the others by number.

    most: another number than ten; None for all.
    """

    def __init__(self, most: int | None = MOST_SHOWN) -> None:
        self.shown, self.more = list[Finding](), 0
        self._most = most
        self._headers: set[int | None] = set()

    def add(
        self,
        what: str,
        line: int | None = None,
        column: str | None = None,
        *,
        of_cell: bool = False,
    ) -> None:
        """Add one finding; a second header counts once a line, whatever its columns."""
        if what == HEADER:
            column = None
            if line in self._headers:
                return
            self._headers.add(line)
        if self._most is None or len(self.shown) < self._most:
            self.shown.append(
                Finding(what=what, line=line, column=column, of_cell=of_cell)
            )
        else:
            self.more += 1

    def __bool__(self) -> bool:
        return bool(self.shown)


def sentences(findings: Findings, word: str) -> str:
    """Return what was found as one text."""
    return _together([found.sentence(word) for found in findings.shown], findings.more)


def _together(said: list[str], more: int) -> str:
    rest = [f"and {more} more"] if more else []
    return f"{'; '.join([*said, *rest])}".rstrip(".") + "."


def form(text: str) -> str:
    """Return what a value looks like and not what it is: 9 for digits, A for letters."""
    shape = "".join(_shape_of(character) for character in text[: _LONGEST_FORM + 1])
    if len(shape) > _LONGEST_FORM:
        shape = re.sub(r"9{4,}", "999…", re.sub(r"A{4,}", "AAA…", shape))
        shape = f"{shape[:_LONGEST_FORM].rstrip('…')}…"
    return shape


def _shape_of(character: str) -> str:
    kind = unicodedata.category(character)
    if kind[0] == "N":
        return "9"
    if kind[0] in "LM":
        return "A"
    return character if " " <= character <= "~" else "?"


def format_names(names: Iterable[str], most: int = 12) -> str:
    """Return names for a sentence, quoted, and how many more there are."""
    names = list(names)
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return ", ".join(shown)
