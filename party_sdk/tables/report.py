"""The report on a table: how it is read, and its problems with line and column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field

from clustering_protocols.common.errors import InvalidData

MOST_SHOWN: Final = 10
_LEAST_UNIQUE: Final = 0.998
_NAMESAKES: Final = 4  # rows that may share values even in a small table: two pairs
_LEAST_FILLED: Final = 0.05
HEADER: Final = "repeats the names of columns: delete this row"
_LONGEST_FORM: Final = 24
_LONGEST_CELL: Final = 40
_SINGULAR: Final = {
    "not levels": "not a level",
    "not numbers": "not a number",
    "not dates": "not a date",
}


class Finding(BaseModel, frozen=True):
    """One problem and its location, never the value itself.

    of_cell: whether a cell has a wrong value, which a :class:`CellProblem` shows.
    """

    line: int | None = None
    column: str | None = None
    what: str
    of_cell: bool = False

    def sentence(self, word: str) -> str:
        """Return the finding as people read it: ``line 9, crp: empty``."""
        line = None if self.line is None else f"{word} {self.line}"
        location = ", ".join(part for part in (line, self.column) if part)
        return f"{location}: {self.what}" if location else self.what


class CellProblem(BaseModel, frozen=True):
    """The wrong cells of one column, by value.

    Its values are cells: they are shown on the operator's own terminal and desk, and
    written to no log, file or message.

    values: pairs of a value and its number of rows, the most frequent first.
    n_rows: number of rows with a wrong cell, including values that are not listed.
    line: line or row number of the first of these rows.
    hint: a possible remedy.
    """

    column: str
    what: str
    values: tuple[tuple[str, int], ...] = Field(repr=False)
    n_rows: int
    line: int
    hint: str = ""

    def sentence(self, word: str) -> str:
        """Return the problem as a text: ``sex: 'M' (161), 'f' (11) are not levels``."""
        parts = []
        for text, n in self.values[:MOST_SHOWN]:
            clean = " ".join(text.split())
            clean, more = clean[:_LONGEST_CELL], "…" * (len(clean) > _LONGEST_CELL)
            parts.append(f"{clean + more!r} ({n:,})")
        if (n_others := self.n_rows - sum(n for _, n in self.values[:MOST_SHOWN])) > 0:
            parts.append(f"others ({n_others:,})")
        verdict = f"are {self.what}"
        if len(parts) == 1:
            kind, colon, levels = self.what.partition(";")
            verdict = f"is {_SINGULAR.get(kind, kind)}{colon}{levels}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.column}: {', '.join(parts)} {verdict} (first: {word} {self.line}){hint}"


class ColumnReport(BaseModel, frozen=True):
    """How one column is read: name, type, and numbers of missing and unreadable cells.

    codes: for each text that means a missing value, its number of rows.
    least, largest: a number, or a date in ISO 8601; None for a column that may hold ids.
    """

    name: str
    type: str
    missing: int = 0
    unreadable: int = 0
    codes: dict[str, int] = {}
    least: float | str | None = None
    largest: float | str | None = None

    @property
    def codes_sentence(self) -> str:
        """Return a sentence about codes of missing values; empty if there are none."""
        counts = [
            f"{code} in {n:,} row{'s' * (n > 1)}" for code, n in self.codes.items()
        ]
        return f"{self.name}: read as missing: {', '.join(counts)}." if counts else ""

    @property
    def range(self) -> tuple[str, str]:
        """Return the least and the largest value as texts; both empty if unknown."""
        if self.least is None or self.largest is None:
            return "", ""
        bounds = self.least, self.largest
        low, high = (b if isinstance(b, str) else f"{b:.6g}" for b in bounds)
        return low, high


class KeyPreview(BaseModel, frozen=True):
    """A match key with its figures for one table.

    Its values are cells: they are shown on the operator's own terminal and desk, and
    written to no log, file or message.

    n_filled: number of rows with a value.
    n_unique: number of rows with a value that no other row has.
    n_stand_ins: rows without a value because a cell stands for a missing one.
    first: the values of the first rows; empty if missing or not unique.
    """

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
        """Return whether enough rows have a value, and nearly all values are unique."""
        n_shared = self.n_filled - self.n_unique
        nearly_unique = self.uniqueness >= _LEAST_UNIQUE or n_shared <= _NAMESAKES
        return self.completeness >= _LEAST_FILLED and nearly_unique

    @property
    def sentence(self) -> str:
        """Return the figures as a sentence."""
        figures = (
            f"{self.n_filled:,} of {self.n_rows:,} rows have a value, and "
            f"{self.n_unique:,} of these values are unique"
        )
        if not self.n_stand_ins:
            return figures
        return f"{figures}; in {self.n_stand_ins:,} rows a cell means missing"

    @property
    def first_values(self) -> str:
        """Return the first values for the operator's own screen."""
        return ", ".join(repr(value) if value else "none" for value in self.first)


class CheckReport(BaseModel, frozen=True):
    """The result of reading a table, with the problems that make it unreadable.

    file: the file's name, without its folder.
    counts: what line numbers count: ``line`` for a text file, ``row`` for other tables.
    rows: 0 if the table cannot be read.
    not_read: number of rows that were left out or are unreadable.
    dialect: how a text file is written; ``--csv NAME=VALUE`` sets a part of it.
    problems: at most ten; ``more_problems`` counts the others.
    cells: the problems with values of cells.
    match_keys: figures of the session's match keys, if these link the rows.
    """

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
        """Return the number of rows read, and of all rows if some were not read."""
        if not self.not_read:
            return f"{self.rows} rows"
        return f"{self.rows} of {self.rows + self.not_read} rows"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all problems, with cell values, for the operator's own screen."""
        columns = {problem.column for problem in self.cells}
        findings = [p for p in self.problems if not (p.of_cell and p.column in columns)]
        more = self.more_problems and not self.cells
        return (
            *(problem.sentence(self.counts) for problem in self.cells),
            *(finding.sentence(self.counts) for finding in findings),
            *([f"{self.more_problems} more"] if more else []),
        )

    @property
    def dialect_texts(self) -> dict[str, str]:
        """Return the settings of a text file's dialect as people write them."""
        texts = {}
        for name, part in self.dialect.items():
            if isinstance(part, str):
                texts[name] = repr(part) if len(part) < 3 else part
            else:
                is_list = isinstance(part, Sequence)
                texts[name] = " ".join(map(repr, part)) if is_list else str(part)
        return texts

    def raise_for_problems(self) -> None:
        """Raise :class:`InvalidData` with the problems, if there are any."""
        if self.problems:
            raise self.refusal(self.problems, self.more_problems)

    def refusal(self, findings: Sequence[Finding], more: int) -> InvalidData:
        """Return findings as an error that names the file, lines and columns."""
        detail = _join_sentences(findings, more, self.counts)
        if self.file and any(finding.line or finding.column for finding in findings):
            detail = f"{self.file}: {detail}"
        return InvalidData(detail, cells=self.sentences if self.cells else ())


class Findings:
    """Collects findings up to a limit, and counts the others.

    limit: None to collect all.
    """

    def __init__(self, limit: int | None = MOST_SHOWN) -> None:
        self.shown, self.more = list[Finding](), 0
        self._limit = limit
        self._headers: set[int | None] = set()

    def add(
        self,
        what: str,
        line: int | None = None,
        column: str | None = None,
        *,
        of_cell: bool = False,
    ) -> None:
        """Add one finding; a repeated header row is added once, not for each column."""
        if what == HEADER:
            column = None
            if line in self._headers:
                return
            self._headers.add(line)
        if self._limit is None or len(self.shown) < self._limit:
            self.shown.append(
                Finding(what=what, line=line, column=column, of_cell=of_cell)
            )
        else:
            self.more += 1

    def __bool__(self) -> bool:
        return bool(self.shown)


def sentences(findings: Findings, word: str) -> str:
    """Return all findings as one text."""
    return _join_sentences(findings.shown, findings.more, word)


def _join_sentences(findings: Sequence[Finding], more: int, word: str) -> str:
    parts = [finding.sentence(word) for finding in findings]
    parts += [f"and {more} more"] if more else []
    return "; ".join(parts).rstrip(".") + "."


def shape_of(text: str) -> str:
    """Return the shape of a value instead of the value: 9 for digits, A for letters."""
    shape = "".join(_symbol_of(character) for character in text[: _LONGEST_FORM + 1])
    if len(shape) > _LONGEST_FORM:
        shape = re.sub(r"9{4,}", "999…", re.sub(r"A{4,}", "AAA…", shape))
        shape = f"{shape[:_LONGEST_FORM].rstrip('…')}…"
    return shape


def _symbol_of(character: str) -> str:
    kind = unicodedata.category(character)
    if kind[0] == "N":
        return "9"
    if kind[0] in "LM":
        return "A"
    return character if " " <= character <= "~" else "?"


def format_names(names: Iterable[str]) -> str:
    """Return at most twelve quoted names for a sentence, and the number of others."""
    quoted = list(map(repr, names))
    more = [f"{len(quoted) - 12} more"] * (len(quoted) > 12)
    return ", ".join([*quoted[:12], *more])
