"""Rows of other kinds of file, which were written as text: DuckDB reads the copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from party_sdk.tables.formats.text import TextSource
from party_sdk.tables.parsing.dialect import Dialect
from party_sdk.tables.parsing.limits import Limits
from party_sdk.tables.parsing.row_places import NumberedRows, Places, RemainingRows

_COUNTED: Final = NumberedRows()


class CopiedSource(TextSource):
    """Rows of another kind of file, written as text for DuckDB to read.

    copy: one line per row, in UTF-8 and commas, with the names of columns in the first.
    rows: what rows are called.
    shown: what was chosen in the file, such as its sheet.
    decimal: the sign of numbers in the copy.
    """

    def __init__(
        self,
        copy: Path,
        said: Dialect,
        rows: NumberedRows = _COUNTED,
        shown: dict[str, Any] | None = None,
        decimal: str = ".",
    ) -> None:
        known = Dialect(
            encoding="utf-8",
            delimiter=",",
            decimal=decimal,
            skip=0,
            dates=said.dates,
            missing=said.missing,
        )
        super().__init__(copy, "text", known, copy.parent, Limits(copy.name))
        self._rows = rows
        self._shown = shown or {}

    @property
    def places(self) -> Places:
        """Return the rows' numbers."""
        return self._rows

    @property
    def format_description(self) -> dict[str, Any]:
        """Return what was chosen in the file, and how its texts are written."""
        found = self.dialect
        decimal = {"decimal": found.decimal} if found.decimal != "." else {}
        return self._shown | decimal | ({"dates": found.dates} if found.dates else {})

    def _lines(self, positions: Sequence[int]) -> list[int]:
        del positions
        return self._rows.of([reject.record - 2 for reject in self._rejects[:200]])

    def _find_remaining(self) -> RemainingRows:
        rejected = {reject.record - 2 for reject in self._rejects}
        return RemainingRows(self._rows, sorted(rejected))
