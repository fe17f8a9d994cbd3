"""Dictionaries as people edit them: a row for each variable, in a form or spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Self

from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.values import (
    convert_validation_error,
    explain_validation_error,
    suggest_similar_name,
)
from clustering_protocols.terms.schema import (
    Constraints,
    Field,
    Level,
    Schema,
    normalise_text,
)

ROLES: Final = ("cluster", "describe", "leave-out")
TYPES: Final = ("number", "integer", "boolean", "string", "date")
_YES: Final = frozenset({"yes", "y", "true", "1", "x", "ja", "wahr", "oui", "vrai"})
_NO: Final = frozenset({"", "no", "n", "false", "0", "nein", "falsch", "non", "faux"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A row of the table of variables; an empty cell means the default.

    minimum, maximum: numbers, or dates such as 2026-01-31.
    levels: separated by commas, and quoted if they contain one; ``1=female`` is a level
        with a label. A backslash precedes ``=`` or a backslash in a level itself.
    ordered, required: yes or no.
    missing: codes of missing values, separated by commas.
    """

    name: str
    role: str = ""
    type: str = ""
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    decimals: str = ""
    levels: str = ""
    ordered: str = ""
    required: str = ""
    missing: str = ""
    title: str = ""
    description: str = ""

    @classmethod
    def from_field(cls, field: Field, schema: Schema) -> Self:
        """Write a field as texts, with the schema's codes unless the field has its own."""
        codes = field.missingValues
        if codes is None and set(schema.missingValues) - {""}:
            codes = schema.missingValues
        low, high = field.constraints.minimum, field.constraints.maximum
        levels = [
            re.sub(r"([\\=])", r"\\\1", value) + (f"={label}" * (label != value))
            for value, label in zip(field.levels, field.labels, strict=True)
        ]
        return cls(
            name=field.name,
            role=field.role,
            type=field.type,
            unit=field.unit,
            minimum="" if low is None else str(low),
            maximum="" if high is None else str(high),
            decimals="" if field.decimals is None else str(field.decimals),
            levels=join_texts(levels),
            ordered="yes" if field.categoriesOrdered else "",
            required="yes" if field.constraints.required else "",
            missing="" if codes is None else join_texts(codes),
            title=field.title,
            description=field.description,
        )

    def to_field(self) -> Field:
        """Build the field that this row describes.

        Raises InvalidData if a cell is not valid; the message names the column.
        """
        kind = self.type.strip() or ("string" if self.levels.strip() else "number")

        def parse_cell(name: str, parse: Callable[[str], Any]) -> Any:
            text = getattr(self, name).strip()
            try:
                return parse(text) if text else None
            except ValueError as error:
                raise InvalidData(f"{name}: {error}") from None

        constraints = {
            "minimum": parse_cell("minimum", str if kind == "date" else _parse_number),
            "maximum": parse_cell("maximum", str if kind == "date" else _parse_number),
            "required": parse_cell("required", _parse_yes_or_no) or False,
        }
        values: dict[str, Any] = {
            "name": self.name,
            "role": self.role.strip() or "cluster",
            "type": kind,
            "unit": self.unit,
            "title": self.title,
            "description": self.description,
            "decimals": parse_cell("decimals", _parse_integer),
            "categories": parse_cell(
                "levels",
                lambda text: tuple(
                    _parse_level(level, kind) for level in split_texts(text)
                ),
            )
            or (),
            "categoriesOrdered": parse_cell("ordered", _parse_yes_or_no) or False,
            "missingValues": parse_cell("missing", split_texts),
        }
        try:
            return Field(**values, constraints=Constraints(**constraints))
        except ValidationError as error:
            problem = convert_validation_error(error)
            prefix = f"{problem.field}: " if problem.field else ""
            raise InvalidData(f"{prefix}{problem.message}") from None


COLUMNS: Final = tuple(column.name for column in fields(Variable))
"""The columns of the table of variables."""


def split_texts(text: str) -> tuple[str, ...]:
    """Split a text at its commas, except for commas within quotes.

    Raises ValueError if the text is not one line of CSV.
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise ValueError("separate them with commas, in one line") from None
    return tuple(part.strip() for row in rows for part in row)


def join_texts(texts: Any) -> str:
    """Join texts with commas, in the format that :func:`split_texts` reads."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(texts)
    return buffer.getvalue()


def _parse_level(text: str, kind: str) -> Level:
    value, label = _LEVEL.findall(text)[0]
    value, label = re.sub(r"(?s)\\(.)", r"\1", value), label.strip()
    if kind == "integer":
        return Level(value=_parse_integer(value), label=label)
    if not value.strip():
        raise ValueError("a level is empty")
    return Level(value=value.strip(), label=label)


def _parse_number(text: str) -> float | int:
    with suppress(ValueError):
        return int(text)
    try:
        return float(text if "." in text else text.replace(",", "."))
    except ValueError:
        raise ValueError("give a number") from None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("give a whole number") from None


def _parse_yes_or_no(text: str) -> bool:
    folded = text.casefold()
    if folded not in _YES | _NO:
        raise ValueError("write yes or no")
    return folded in _YES


_LEVEL: Final = re.compile(r"((?:\\.|[^=\\])*\\?)(?:=(.*))?", re.DOTALL)
_MOST_BYTES: Final = 1 << 26
_MOST_SHOWN: Final = 10
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
_NUMBER: Final = re.compile(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?")
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryDraft:
    """A draft of a dictionary, with one row of texts per variable.

    reasons: for each variable that the draft leaves out, the reason.
    """

    variables: tuple[Variable, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_schema(cls, schema: Schema) -> Self:
        """Write a dictionary as rows of texts."""
        return cls(
            variables=tuple(
                Variable.from_field(field, schema) for field in schema.fields
            )
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(variable.name for variable in self.variables)

    def faults(self) -> dict[int, str]:
        """Return the problem of each row that is not valid, by row number from 1."""
        return self._parse_rows()[1]

    def to_schema(self) -> Schema:
        """Build the dictionary.

        Raises InvalidData if any row is not valid; the message lists rows and problems.
        """
        schema_fields, faults = self._parse_rows()
        if faults:
            lines = [
                f"row {row} ({self.variables[row - 1].name!r}): {fault}"
                for row, fault in list(faults.items())[:_MOST_SHOWN]
            ]
            more = len(faults) - len(lines)
            lines += [f"{more} more rows"] if more else []
            raise InvalidData(f"The table of variables: {'; '.join(lines)}.")
        try:
            return Schema(fields=tuple(schema_fields))
        except ValidationError as error:
            detail = convert_validation_error(error).message
            raise InvalidData(f"The table of variables: {detail}") from None

    def _parse_rows(self) -> tuple[list[Field], dict[int, str]]:
        schema_fields: list[Field] = []
        faults: dict[int, str] = {}
        names: set[str] = set()
        for row, variable in enumerate(self.variables, 1):
            try:
                schema_fields.append(variable.to_field())
            except InvalidData as refused:
                faults[row] = refused.detail.rstrip(".")
                continue
            if schema_fields[-1].name in names:
                faults[row] = "another row has this name"
            names.add(schema_fields[-1].name)
        return schema_fields, faults

    def with_changes(self, changes: Mapping[str, Cells]) -> Self:
        """Return a copy with the changed cells of some variables, given by name.

        Raises InvalidParameters if there is no variable of a given name.
        """
        cells_by_name = {normalise_text(name): cells for name, cells in changes.items()}
        if unknown := [name for name in cells_by_name if name not in self.names]:
            hint = suggest_similar_name(unknown[0], self.names)
            raise InvalidParameters(f"There is no variable {unknown[0]!r}.{hint}")
        rows = (
            replace(row, **cells_by_name.get(row.name, {})) for row in self.variables
        )
        return replace(self, variables=tuple(rows))

    def to_csv(self) -> str:
        """Write the rows as CSV, below a line with the names of the columns.

        A cell that a spreadsheet would read as a formula gets a leading apostrophe.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for variable in self.variables:
            writer.writerow(map(_escape_formula, astuple(variable)))
        return buffer.getvalue()

    @classmethod
    def read_csv(cls, path: Path) -> Self:
        """Read a draft from a CSV file that a spreadsheet may have written.

        Cells are separated by commas, semicolons or tabs. Columns may be in any order,
        and only ``name`` is required.

        Raises InvalidData if the file cannot be read or has unknown columns.
        """
        try:
            content = read_limited(path)
            try:
                text = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = content.decode("cp1252", errors="replace")
            delimiter = max(",;\t", key=text.partition("\n")[0].count)
            lines = io.StringIO(text, newline="")
            rows = list(csv.reader(lines, delimiter=delimiter, strict=True))
        except OSError:
            raise InvalidData(f"There is no file {path.name!r}.") from None
        except csv.Error:
            raise InvalidData(
                f"{path.name!r} is not a CSV file, or has a cell of more than 131,072 "
                "characters: write such a dictionary as JSON."
            ) from None
        names = [normalise_text(name).casefold() for name in rows[0]] if rows else []
        if unknown := [name for name in names if name and name not in COLUMNS]:
            hint = suggest_similar_name(unknown[0], COLUMNS)
            raise InvalidData(
                f"{path.name!r} has a column {unknown[0]!r}; a table of variables has "
                f"{', '.join(COLUMNS)}.{hint}"
            )
        if "name" not in names or len(set(names)) < len(names):
            raise InvalidData(
                f"{path.name!r} needs a column 'name', and distinct column names."
            )
        variables = [Variable(**_cells_of(names, row)) for row in rows[1:] if any(row)]
        if not variables:
            raise InvalidData(f"{path.name!r} has no variables below its columns.")
        return cls(variables=tuple(variables))


def _cells_of(names: Sequence[str], row: Iterable[str]) -> dict[str, str]:
    pairs = zip(names, row, strict=False)
    texts = ((name, text.strip()) for name, text in pairs if name)
    cells = {name: text[1:] if _is_escaped(text) else text for name, text in texts}
    return {**cells, "name": normalise_text(cells.get("name", ""))}


def _escape_formula(text: str) -> str:
    is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula or _is_escaped(text) else text


def _is_escaped(text: str) -> bool:
    """Return whether a leading apostrophe keeps a text from being a formula."""
    formula = text.lstrip("'")
    return formula != text and bool(_FORMULA.match(formula))


def read_limited(path: Path) -> bytes:
    """Read a file of at most 64 MiB.

    Raises InvalidData if the file is larger.
    """
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidData(f"{path.name!r} is larger than 64 MiB.")
    return content


def read_schema(path: Path) -> Schema:
    """Read a dictionary from a JSON file.

    Raises InvalidData if the file does not exist or is not a valid dictionary.
    """
    try:
        return Schema.model_validate_json(read_limited(path))
    except OSError:
        raise InvalidData(f"There is no dictionary {path.name!r}.") from None
    except ValidationError as error:
        raise InvalidData(
            f"{path.name!r} is not a dictionary: {explain_validation_error(error)}"
        ) from None


def read_draft(path: Path) -> DictionaryDraft:
    """Read a draft from a dictionary in JSON, or from a table of variables (``.csv``).

    Raises InvalidData if the file does not exist or is neither.
    """
    if path.suffix.lower() == ".csv":
        return DictionaryDraft.read_csv(path)
    return DictionaryDraft.from_schema(read_schema(path))
