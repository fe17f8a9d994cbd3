"""The report on a table: how its columns were read, with all problems and warnings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field

from clustering_protocols.common.errors import InvalidData

MOST_SHOWN: Final = 10
_LEAST_UNIQUE: Final = 0.998
_NAMESAKES: Final = 4  # in a small table, two pairs of rows may share their values
_LEAST_FILLED: Final = 0.05
_CODES_REMEDY: Final = (
    'If such a value means "missing", list its cells for its column only: missing = '
    "[…] in a mapping, or missingValues of its field in a dictionary."
)
HEADER: Final = "repeats the names of columns: delete this row"
_LONGEST_FORM: Final = 24
_LONGEST_CELL: Final = 40
_SINGULAR: Final = {
    "not levels": "not a level",
    "not numbers": "not a number",
    "not dates": "not a date",
}


class Finding(BaseModel, frozen=True):
    """A problem of a table and its location. A finding never quotes a cell.

    of_cell: whether a cell has a wrong value, which a :class:`CellProblem` quotes.
    """

    line: int | None = None
    column: str | None = None
    what: str
    of_cell: bool = False

    def to_sentence(self, word: str) -> str:
        """Return the location and the problem, such as ``line 9, crp: empty``."""
        line = None if self.line is None else f"{word} {self.line}"
        location = ", ".join(part for part in (line, self.column) if part)
        return f"{location}: {self.what}" if location else self.what


class CellProblem(BaseModel, frozen=True):
    """The wrong values of one column that share the same problem.

    The values come from cells: they may be shown on the operator's own terminal and
    desk, but must not be written to a log, file or message.

    values: pairs of a value and its number of rows, the most frequent value first.
    n_rows: number of rows with a wrong value, including values that are not listed.
    line: line or row number of the first of these rows; None if it is uncertain.
    hint: a possible remedy; empty if there is none.
    """

    column: str
    what: str
    values: tuple[tuple[str, int], ...] = Field(repr=False)
    n_rows: int
    line: int | None
    hint: str = ""

    def to_sentence(self, word: str) -> str:
        """Return a sentence such as ``sex: 'M' (161) is not a level (first: line 2)``."""
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
        first = "" if self.line is None else f" (first: {word} {self.line})"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.column}: {', '.join(parts)} {verdict}{first}{hint}"


class ColumnReport(BaseModel, frozen=True):
    """How a column was read: its type, and how many cells are missing or unreadable.

    codes: for each code of a missing value, the number of rows with it.
    least, largest: numbers, or dates in ISO 8601; None if the values might be ids.
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
        """Return a sentence that lists the codes read as missing; empty if none were."""
        counts = [
            f"{code} in {n:,} row{'s' * (n > 1)}" for code, n in self.codes.items()
        ]
        return f"{self.name}: read as missing: {', '.join(counts)}." if counts else ""

    @property
    def range_texts(self) -> tuple[str, str]:
        """Return the smallest and the largest value as texts; both are empty if unknown."""
        if self.least is None or self.largest is None:
            return "", ""
        bounds = self.least, self.largest
        low, high = (b if isinstance(b, str) else f"{b:.6g}" for b in bounds)
        return low, high


class KeyPreview(BaseModel, frozen=True):
    """A match key, and how well it would identify the rows of one table.

    The first values come from cells: they may be shown on the operator's own terminal
    and desk, but must not be written to a log, file or message.

    n_filled: number of rows that have a value of the key.
    n_unique: number of rows with a value that no other row has.
    n_stand_ins: number of rows in which a cell is a placeholder for a missing value.
    first: the key's values in the first rows; empty where there is no unique value.
    """

    key: str
    n_rows: int
    n_filled: int
    n_unique: int
    n_stand_ins: int = 0
    first: tuple[str, ...] = Field(default=(), repr=False)

    @property
    def completeness(self) -> float:
        """Return the fraction of rows that have a value."""
        return self.n_filled / self.n_rows if self.n_rows else 0.0

    @property
    def uniqueness(self) -> float:
        """Return the fraction of values that occur only once; 1 if there are none."""
        return self.n_unique / self.n_filled if self.n_filled else 1.0

    @property
    def is_usable(self) -> bool:
        """Return whether enough rows have a value and nearly all values are unique."""
        n_shared = self.n_filled - self.n_unique
        nearly_unique = self.uniqueness >= _LEAST_UNIQUE or n_shared <= _NAMESAKES
        return self.completeness >= _LEAST_FILLED and nearly_unique

    @property
    def sentence(self) -> str:
        """Return how many rows have a value, and how many of these values are unique."""
        figures = (
            f"{self.n_filled:,} of {self.n_rows:,} rows have a value, and "
            f"{self.n_unique:,} of these values are unique"
        )
        if not self.n_stand_ins:
            return figures
        return f"{figures}; in {self.n_stand_ins:,} rows a cell means missing"

    @property
    def first_values(self) -> str:
        """Return the key's first values as one text, for the operator's own screen."""
        return ", ".join(repr(value) if value else "none" for value in self.first)


class CheckReport(BaseModel, frozen=True):
    """The result of reading a table, including any problems that make it unusable.

    file: the file's name, without its folder; empty for a table in memory.
    counts: what line numbers count: ``line`` in a text file, ``row`` in other tables.
    rows: number of rows that were read; 0 if the table cannot be read.
    not_read: number of rows that were left out or could not be read.
    dialect: the file's format; ``--csv NAME=VALUE`` overrides a detected setting.
    problems: the first ten problems; ``more_problems`` is the number of the others.
    obstacles: missing values, words or dates for which no preparation is agreed; of many
        missing values only the first. ``more_obstacles`` is the number of the others.
    outliers: sentences on values far from all others, which may mean 'missing'. They
        quote cells, so they must not be written to a log, file or message.
    cells: the wrong values of cells, by column and problem.
    match_keys: previews of the session's match keys, if these link the rows.
    """

    file: str
    counts: str = "line"
    rows: int = 0
    columns: tuple[ColumnReport, ...] = ()
    dialect: dict[str, Any] = {}
    problems: tuple[Finding, ...] = ()
    more_problems: int = 0
    obstacles: tuple[Finding, ...] = ()
    more_obstacles: int = 0
    warnings: tuple[str, ...] = ()
    outliers: tuple[str, ...] = Field(default=(), repr=False)
    not_read: int = 0
    cells: tuple[CellProblem, ...] = Field(default=(), repr=False)
    match_keys: tuple[KeyPreview, ...] = Field(default=(), repr=False)

    @property
    def row_count_text(self) -> str:
        """Return a text such as ``90 of 100 rows``, or ``90 rows`` if none are missing."""
        if not self.not_read:
            return f"{self.rows} rows"
        return f"{self.rows} of {self.rows + self.not_read} rows"

    @property
    def warning_sentences(self) -> tuple[str, ...]:
        """Return all warnings and outliers, for the operator's own screen only."""
        remedy = (_CODES_REMEDY,) if self.outliers else ()
        return (*self.warnings, *self.outliers, *remedy)

    @property
    def obstacle_sentences(self) -> tuple[str, ...]:
        """Return a sentence that lists the obstacles, or nothing if there are none."""
        if not self.obstacles:
            return ()
        obstacles = join_findings(self.obstacles, self.counts, self.more_obstacles)
        return (f"Refused unless the terms say how to prepare them: {obstacles}",)

    @property
    def problem_sentences(self) -> tuple[str, ...]:
        """Return all problems with the wrong values, for the operator's own screen only."""
        columns = {problem.column for problem in self.cells}
        findings = [p for p in self.problems if not (p.of_cell and p.column in columns)]
        more = self.more_problems and not self.cells
        return (
            *(problem.to_sentence(self.counts) for problem in self.cells),
            *(finding.to_sentence(self.counts) for finding in findings),
            *([f"{self.more_problems} more"] if more else []),
        )

    @property
    def dialect_texts(self) -> dict[str, str]:
        """Return the settings of the dialect as readable texts, by name."""
        texts = {}
        for name, part in self.dialect.items():
            if isinstance(part, str):
                texts[name] = repr(part) if len(part) < 3 else part
            else:
                is_list = isinstance(part, Sequence)
                texts[name] = " ".join(map(repr, part)) if is_list else str(part)
        return texts

    def raise_for_problems(self) -> None:
        """Raise :class:`InvalidData` if the table has problems."""
        if self.problems:
            raise self.build_error(self.problems, self.more_problems)

    def build_error(self, findings: Sequence[Finding], more: int) -> InvalidData:
        """Build the error that lists some findings and says how many ``more`` there are."""
        detail = join_findings(findings, self.counts, more)
        if self.file and any(finding.line or finding.column for finding in findings):
            detail = f"{self.file}: {detail}"
        return InvalidData(detail, cells=self.problem_sentences if self.cells else ())


def join_findings(findings: Sequence[Finding], word: str, more: int = 0) -> str:
    """Join at most ten findings into one text.

    word: whether their numbers count lines or rows.
    more: the number of further findings.
    """
    more += max(0, len(findings) - MOST_SHOWN)
    parts = [finding.to_sentence(word) for finding in findings[:MOST_SHOWN]]
    parts += [f"and {more} more"] if more else []
    return "; ".join(parts).rstrip(".") + "."


def mask_text(text: str) -> str:
    """Replace letters by A and digits by 9, to show a value's form but not the value."""
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
    """Quote up to twelve names, separated by commas, and add how many more there are."""
    quoted = list(map(repr, names))
    more = [f"{len(quoted) - 12} more"] * (len(quoted) > 12)
    return ", ".join([*quoted[:12], *more])
