"""A dictionary that is being written: its rows, changes, and what is wrong with each."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.validation_messages import (
    did_you_mean,
    invalid_parameters,
)
from clustering_protocols.terms.schema import Field, Schema, normal
from party_sdk.tables.dictionaries.variables import COLUMNS, Variable

_MOST_BYTES: Final = 1 << 26
_MOST_SHOWN: Final = 10
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
_NUMBER: Final = re.compile(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?")
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryDraft:
    """The variables of a dictionary, as rows of texts.

    reasons: why a variable is proposed to be left out, by its name.
    """

    variables: tuple[Variable, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Return the rows of a dictionary."""
        return cls(variables=tuple(Variable.of(each, schema) for each in schema.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(each.name for each in self.variables)

    def faults(self) -> dict[int, str]:
        """Return what is wrong with each row, counted from 1; empty of a good draft."""
        return self._read()[1]

    def schema(self) -> Schema:
        """Return the dictionary.

        Raises InvalidData: with the rows that describe no variable, and why.
        """
        found, faults = self._read()
        if faults:
            shown = [
                f"row {row} ({self.variables[row - 1].name!r}): {what}"
                for row, what in list(faults.items())[:_MOST_SHOWN]
            ]
            more = len(faults) - len(shown)
            shown += [f"{more} more rows"] if more else []
            raise InvalidData(f"The table of variables: {'; '.join(shown)}.")
        try:
            return Schema(fields=tuple(found))
        except ValidationError as error:
            said = invalid_parameters(error).said
            raise InvalidData(f"The table of variables: {said}") from None

    def _read(self) -> tuple[list[Field], dict[int, str]]:
        found: list[Field] = []
        faults: dict[int, str] = {}
        seen: set[str] = set()
        for row, variable in enumerate(self.variables, 1):
            try:
                found.append(variable.field())
            except InvalidData as refused:
                faults[row] = refused.detail.rstrip(".")
                continue
            if found[-1].name in seen:
                faults[row] = "another row has this name"
            seen.add(found[-1].name)
        return found, faults

    def change(self, changes: Mapping[str, Cells]) -> Self:
        """Return a draft in which variables have other cells, by their names.

        Digits behind the point go with the type of a number.

        Raises InvalidParameters if no variable has a name.
        """
        asked = {normal(name): cells for name, cells in changes.items()}
        if unknown := [name for name in asked if name not in self.names]:
            hint = did_you_mean(unknown[0], self.names)
            raise InvalidParameters(f"There is no variable {unknown[0]!r}.{hint}")
        rows = []
        for row in self.variables:
            cells = asked.get(row.name, {})
            keeps = cells.get("type", row.type) == row.type
            digits = {} if keeps else {"decimals": ""}
            rows.append(replace(row, **{**digits, **cells}))
        return replace(self, variables=tuple(rows))

    def to_csv(self) -> str:
        """Return the rows as CSV, with the names of columns first.

        A cell that a spreadsheet would compute has an apostrophe before it.
        """
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for variable in self.variables:
            writer.writerow(map(_guard, variable.cells().values()))
        return written.getvalue()

    @classmethod
    def read_csv(cls, path: Path) -> Self:
        """Return the rows of a CSV file, as a spreadsheet writes it.

        Commas, semicolons or tabs stand between cells; columns come in any order, and
        ``name`` alone is needed.

        Raises InvalidData if it cannot be read, or has other columns.
        """
        try:
            rows = _split_rows(_decode(read_whole(path)))
        except OSError:
            raise InvalidData(f"There is no file {path.name!r}.") from None
        except csv.Error:
            raise InvalidData(
                f"{path.name!r} is no CSV file, or has a cell of more than 131,072 "
                "characters: write such a dictionary as JSON."
            ) from None
        heads = [normal(head).casefold() for head in rows[0]] if rows else []
        if unknown := [head for head in heads if head and head not in COLUMNS]:
            hint = did_you_mean(unknown[0], COLUMNS)
            raise InvalidData(
                f"{path.name!r} has a column {unknown[0]!r}; a table of variables has "
                f"{', '.join(COLUMNS)}.{hint}"
            )
        if "name" not in heads or len(set(heads)) < len(heads):
            raise InvalidData(f"{path.name!r} needs a column 'name', and each once.")
        variables = [Variable(**_cells_of(heads, row)) for row in rows[1:] if any(row)]
        if not variables:
            raise InvalidData(f"{path.name!r} has no variables below its columns.")
        return cls(variables=tuple(variables))


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _split_rows(text: str) -> list[list[str]]:
    head = text.partition("\n")[0]
    mark = max(",;\t", key=head.count)
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))


def _cells_of(heads: Sequence[str], row: Iterable[str]) -> dict[str, str]:
    pairs = zip(heads, row, strict=False)
    cells = {head: _bare(text.strip()) for head, text in pairs if head}
    return {**cells, "name": normal(cells.get("name", ""))}


def _guard(text: str) -> str:
    is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula or _is_guarded(text) else text


def _bare(text: str) -> str:
    return text[1:] if _is_guarded(text) else text


def _is_guarded(text: str) -> bool:
    """Return whether an apostrophe stands before what a spreadsheet would compute."""
    rest = text.lstrip("'")
    return rest != text and bool(_FORMULA.match(rest))


def read_whole(path: Path) -> bytes:
    """Return what stands in a file; of one that does not end no more than is allowed.

    Raises InvalidData if it is larger than a dictionary may be.
    """
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidData(f"{path.name!r} is larger than 64 MiB.")
    return content
