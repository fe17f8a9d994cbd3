"""Mappings translate a table into the terms of a session's dictionary.

Each party keeps its mapping in a TOML file. No part of a mapping is sent to anyone.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.common.values import describe_finding, suggest_similar_name
from clustering_protocols.shared_stages.statistics.units import (
    CONVERSIONS,
    find_conversion,
)
from clustering_protocols.terms.schema import MOST_LEVELS, normalise_text
from party_sdk.tables.cells import Dialect, parse_number

VERSION: Final = 1
MOST_COLUMNS: Final = 20_000
MOST_CODES: Final = 1_000
MOST_LINES: Final = 1_000
_LEAST_FACTOR: Final = 1e-12
_LARGEST: Final = 1e12

DateOrder: TypeAlias = Literal["year-first", "day-first", "month-first", "excel"]
Thousands: TypeAlias = Literal[".", ",", " ", "'"]
Limit: TypeAlias = Literal["half", "value", "missing"]

_LONGEST: Final = 200
_ONE_LINE: Final = re.compile(rf"[^{CONTROLS}]*")

_Text = Annotated[str, Field(max_length=_LONGEST, pattern=rf"^[^{CONTROLS}]*$")]
_Name = Annotated[_Text, AfterValidator(normalise_text), Field(min_length=1)]


def _level_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return normalise_text(value) if isinstance(value, str) else repr(value)


_Level = Annotated[
    StrictBool | StrictInt | StrictFloat | _Name, AfterValidator(_level_text)
]


def _check_spellings(value: Any) -> Any:
    """Reject keys that differ only in blanks or Unicode normalisation."""
    if isinstance(value, Mapping):
        counts = Counter(normalise_text(key) for key in value if isinstance(key, str))
        if any(count > 1 for count in counts.values()):
            raise ValueError("two names are the same except for blanks")
    return value


_DistinctKeys = BeforeValidator(_check_spellings)


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class ColumnMapping(_Part):
    """The mapping of one column of a session.

    source: the column's name in the table (``from`` in the file); by default the same
        name.
    levels: the session's values for cells of the table. Other cells stay unchanged.
    convert: the name of a known conversion of units, such as ``HbA1c, % to mmol/mol``.
    factor, offset: ``value in the session = factor * value in the table + offset``.
    missing: cells of this column that mean a missing value.
    decimal, thousands: the decimal sign and the thousands separator of this column.
    dates: possible orders of day, month and year; each date is read by the first order
        that fits. ``excel`` reads the serial day numbers of Excel.
    limits: the value of a cell such as ``<0.1``: half the limit, the limit itself, or a
        missing value. For ``>9``, ``half`` means the limit itself.
    minus: with ``any``, a number is also negative if its minus sign is another dash, if
        the sign follows the number, or if the number is in brackets.
    """

    source: _Name | None = Field(default=None, alias="from")
    levels: Annotated[dict[_Name, _Level], _DistinctKeys] = Field(
        default={}, max_length=MOST_LEVELS
    )
    convert: _Text | None = None
    factor: float | None = Field(default=None, ge=-_LARGEST, le=_LARGEST)
    offset: float | None = Field(default=None, ge=-_LARGEST, le=_LARGEST)
    missing: tuple[Annotated[_Text, AfterValidator(normalise_text)], ...] = Field(
        default=(), max_length=MOST_CODES
    )
    decimal: Literal[".", ","] | None = None
    thousands: Thousands | None = None
    dates: tuple[DateOrder, ...] = Field(default=(), max_length=4)
    limits: Limit | None = None
    minus: Literal["any"] | None = None

    @field_validator("dates")
    @classmethod
    def _check_dates(cls, dates: tuple[DateOrder, ...]) -> tuple[DateOrder, ...]:
        if {"day-first", "month-first"} <= set(dates):
            raise ValueError("the day or the month is first, not both")
        return dates

    @field_validator("convert")
    @classmethod
    def _check_convert(cls, name: str | None) -> str | None:
        if name is not None and find_conversion(name) is None:
            names = [
                conversion.name for conversion in CONVERSIONS if conversion.quantity
            ]
            hint = suggest_similar_name(name, names, 0.4)
            raise ValueError(f"no conversion has this name; use factor.{hint}")
        return name

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.convert is not None and (self.factor, self.offset) != (None, None):
            raise ValueError("use convert, or factor and offset, but not both")
        if self.factor is not None and abs(self.factor) < _LEAST_FACTOR:
            raise ValueError("a factor of 0 makes all values equal")
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError("one sign cannot separate both decimals and thousands")
        if set(self.missing) & set(self.levels):
            raise ValueError("a cell means both a missing value and a level")
        return self

    @property
    def unit(self) -> tuple[float, float] | None:
        """The factor and offset of the conversion, or None if values keep their unit."""
        if self.convert is not None and (known := find_conversion(self.convert)):
            return known.factor, known.offset
        if self.factor is None and self.offset is None:
            return None
        factor = 1.0 if self.factor is None else self.factor
        return factor, self.offset or 0.0

    @property
    def changes_cells(self) -> bool:
        """Whether the mapping changes cells, rather than just the column's name."""
        has_form = self.unit is not None or self.sets_form
        return bool(self.levels or self.missing or has_form)

    @property
    def sets_form(self) -> bool:
        """Whether the mapping sets a number or date format."""
        return bool(self.sets_notation or self.dates)

    @property
    def sets_notation(self) -> bool:
        """Whether the mapping sets how numbers, minus signs or limits are read."""
        parts = (self.decimal, self.thousands, self.limits, self.minus)
        return any(part is not None for part in parts)

    @property
    def sets_signs(self) -> bool:
        """Whether the mapping sets the decimal sign or the thousands separator."""
        return self.decimal is not None or self.thousands is not None

    @property
    def has_numeric_levels(self) -> bool:
        """Whether there are levels, and all are numbers in the session."""
        return bool(self.levels) and all(
            (value := parse_number(str(level))) is not None and math.isfinite(value)
            for level in self.levels.values()
        )


class OmittedRows(_Part):
    """The rows of a table that do not take part.

    lines: line numbers in a text file, or row numbers in a sheet, as in error messages.
    values: for each column listed here, the cells that exclude their row.
    """

    lines: tuple[Annotated[StrictInt, Field(ge=1, le=2**53)], ...] = Field(
        default=(), max_length=MOST_LINES
    )
    values: Annotated[
        dict[
            _Name,
            Annotated[
                tuple[Annotated[_Text, AfterValidator(normalise_text)], ...],
                Field(min_length=1, max_length=MOST_CODES),
            ],
        ],
        _DistinctKeys,
    ] = Field(default={}, max_length=100)

    def __bool__(self) -> bool:
        return bool(self.lines or self.values)


def _read_dialect(section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section
    words: list[str] = []
    for name, value in section.items():
        is_list = name == "missing" and isinstance(value, list | tuple)
        values = value if is_list else [value]
        for item in values:
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise ValueError(f"{name}: give a text, or a whole number")  # noqa: TRY004  pydantic's
            words.append(f"{name}={item}")
    if len(words) > MOST_CODES or any(len(word) > 250 for word in words):
        raise ValueError("this is too long")
    try:
        return Dialect.parse(words)
    except InvalidParameters as error:
        raise ValueError(error.detail.replace("--csv ", "")) from None


_FileDialect = Annotated[
    Dialect,
    BeforeValidator(_read_dialect),
    PlainSerializer(lambda dialect: dialect.changes),
]


class TableMapping(_Part):
    """A translation of a table into the terms of a session's dictionary.

    file: the dialect of the file; see :class:`~party_sdk.tables.cells.Dialect`.
    columns: mappings by the column's name in the session. Other columns stay unchanged.
    leave_out: the rows that do not take part.
    """

    version: Literal[1] = VERSION
    file: _FileDialect = Dialect()
    columns: Annotated[dict[_Name, ColumnMapping], _DistinctKeys] = Field(
        default={}, max_length=MOST_COLUMNS
    )
    leave_out: OmittedRows = OmittedRows()

    @field_validator("columns")
    @classmethod
    def _check_columns(
        cls, columns: dict[str, ColumnMapping]
    ) -> dict[str, ColumnMapping]:
        targets: dict[str, str] = {}
        for name, column in columns.items():
            other = targets.setdefault(column.source or name, name)
            if other != name:
                raise ValueError(f"{other!r} and {name!r} come from the same column")
        return columns

    def for_new_rows(self) -> Self:
        """Return the mapping without line numbers, which apply to one file only."""
        leave_out = self.leave_out.model_copy(update={"lines": ()})
        return self.model_copy(update={"leave_out": leave_out})

    def source_of(self, name: str) -> str:
        """Return the name in the table of one of the session's columns."""
        mapped = self.columns.get(name)
        return name if mapped is None else mapped.source or name

    def changes(self, name: str) -> bool:
        """Return whether the mapping changes cells of one of the session's columns."""
        mapped = self.columns.get(name)
        return mapped is not None and mapped.changes_cells


def fits_in_mapping(text: str) -> bool:
    """Return whether a mapping can contain a text as a name or a cell."""
    return 0 < len(text) <= _LONGEST and _ONE_LINE.fullmatch(text) is not None


def describe_differences(before: TableMapping, after: TableMapping) -> list[str]:
    """Describe the differences between two mappings by column, without quoting cells.

    Returns an empty list if both mappings translate every table in the same way.
    """
    parts = []
    if before.file != after.file:
        parts.append("how the file is written")
    if before.leave_out != after.leave_out:
        parts.append("which rows are left out")
    for name in sorted({*before.columns, *after.columns}):
        old = before.columns.get(name, ColumnMapping())
        new = after.columns.get(name, ColumnMapping())
        pairs = {
            "name in the table": (before.source_of(name), after.source_of(name)),
            "levels": (old.levels, new.levels),
            "unit": (old.unit, new.unit),
            "codes of missing values": (set(old.missing), set(new.missing)),
            "decimal sign": (old.decimal, new.decimal),
            "thousands separator": (old.thousands, new.thousands),
            "order of dates": (old.dates, new.dates),
            "limits of detection": (old.limits, new.limits),
            "minus signs": (old.minus, new.minus),
        }
        if changed := [part for part, (a, b) in pairs.items() if a != b]:
            parts.append(f"{name}: {', '.join(changed)}")
    return parts


MOST_BYTES: Final = 4 << 20
"""The maximum number of bytes in a mapping file."""

_CELL_TABLES: Final = frozenset({"levels", "values"})
"""TOML tables whose keys are cells, which error messages must not quote."""
_KEYS: Final = [
    field.alias or name
    for part in (ColumnMapping, OmittedRows, TableMapping)
    for name, field in part.model_fields.items()
]


def read_mapping(path: Path) -> TableMapping:
    """Read a mapping from a file.

    Raises InvalidData if the file does not exist or contains no valid mapping.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        raise InvalidData(f"There is no mapping {path.name!r}.") from None
    return parse_mapping(content, path.name)


def load_mapping(
    mapping: TableMapping | str | os.PathLike[str] | None,
) -> TableMapping | None:
    """Return the mapping itself, or read it if the argument is the path of a file."""
    if mapping is None or isinstance(mapping, TableMapping):
        return mapping
    return read_mapping(Path(mapping))


def parse_mapping(content: bytes, name: str) -> TableMapping:
    """Parse the content of a mapping file; ``name`` is stated in errors.

    Raises InvalidData if it is not a valid mapping.
    """
    if len(content) > MOST_BYTES:
        raise InvalidData(f"{name!r} is not a mapping: it has more than 4 MiB.")
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidData(f"{name!r} is not a mapping: it is not in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidData(f"{name!r} is not TOML: {error}.") from None
    except (RecursionError, ValueError):  # too deeply nested, or too large a number
        raise InvalidData(f"{name!r} cannot be read as TOML.") from None
    return _validate(document, name)


def parse_mapping_json(text: str, name: str) -> TableMapping:
    """Parse a mapping in JSON; ``name`` is stated in errors.

    Raises InvalidData if it is not a valid mapping.
    """
    if len(text) > MOST_BYTES:
        raise InvalidData(f"{name!r} is not a mapping: it has more than 4 MiB.")
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        document = None
    if not isinstance(document, dict):
        raise InvalidData(f"{name!r} is not a mapping.")
    return _validate({"version": VERSION, **document}, name)


def dump_mapping(mapping: TableMapping) -> bytes:
    """Format a mapping as TOML, omitting settings that have their default."""
    import tomli_w

    document = mapping.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    return tomli_w.dumps({"version": VERSION, **document}).encode()


def mapping_digest(mapping: TableMapping, key: bytes) -> str:
    """Return the keyed BLAKE2b digest of a mapping in hexadecimal.

    key: 32 secret bytes; without them, nobody can find the levels by guessing.
    """
    document = mapping.model_dump(mode="json", exclude_defaults=True)
    content = json.dumps(document, sort_keys=True, ensure_ascii=False).encode()
    return blake2b(content, key=key, digest_size=32).hexdigest()


def _validate(document: dict[str, Any], name: str) -> TableMapping:
    version = document.get("version")
    if type(version) is not int:
        raise InvalidData(
            f"{name!r} is not a mapping: its first line must be version = {VERSION}."
        )
    if version > VERSION:
        raise InvalidData(
            f"{name!r} is a mapping of version {version}: this release reads {VERSION}."
        )
    try:
        return TableMapping.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidData(f"{name!r} is invalid: {_first_error(error)}.") from None


def _first_error(error: ValidationError) -> str:
    """Describe the first validation error and its location without quoting a cell."""
    finding = error.errors(include_input=False, include_url=False)[0]
    path: list[str] = []
    for part in finding["loc"]:
        if isinstance(part, str) and "[" not in part:
            path.append(part)
        if part in _CELL_TABLES:
            break
    hint = ""
    if finding["type"] == "extra_forbidden":
        hint = suggest_similar_name(path[-1], _KEYS).replace(
            " Did you mean", ": do you mean"
        )
    location = f"{'.'.join(path)}: " if path else ""
    return f"{location}{describe_finding(finding)}{hint}".rstrip("?")
