"""Options for reading a table, as given by commands and by callers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import Schema, normalise_text
from party_sdk.tables.cells import Dialect
from party_sdk.tables.report import format_names

if TYPE_CHECKING:
    from clustering_protocols.terms.preparation import Preparation
    from party_sdk.tables.mapping import TableMapping

IdColumns = str | Sequence[str] | None
UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")


class Names:
    """The normalised column names of a table, in order.

    As in pandas, a column without a name is called ``Unnamed:`` and its position.

    Raises InvalidData if two columns have the same name.
    """

    def __init__(self, names: Iterable[str]) -> None:
        headers = list(names)
        self.all = tuple(
            normalise_text(name) or f"Unnamed: {i}" for i, name in enumerate(headers)
        )
        self._positions = {name: position for position, name in enumerate(self.all)}
        counts = Counter(self.all)
        if duplicates := sorted(name for name in counts if counts[name] > 1):
            numbers = [i for i, name in enumerate(self.all, 1) if name == duplicates[0]]
            raise InvalidData(
                f"Two columns have the same name: {format_names(duplicates)}, columns "
                f"{', '.join(map(str, numbers[:10]))}."
            )
        pairs = zip(self.all, headers, strict=True)
        blank = [name for name, header in pairs if header.strip() != header]
        warning = f"Blanks around the names of {format_names(blank)} were removed."
        self.warnings = (warning,) if blank else ()

    def position(self, name: str) -> int:
        """Return the index of a column.

        Raises InvalidData, which lists the columns, if none has this name.
        """
        self.require([name])
        return self._positions[normalise_text(name)]

    def require(self, names: Iterable[str]) -> None:
        """Raise InvalidData if the table lacks any of these columns."""
        absent = [name for name in names if normalise_text(name) not in self._positions]
        if not absent:
            return
        folded = {name.casefold(): name for name in self.all}
        suggestions = [
            folded[match]
            for name in absent
            for match in get_close_matches(normalise_text(name).casefold(), folded, n=1)
        ]
        hint = f" Did you mean {format_names(suggestions)}?" if suggestions else ""
        raise InvalidData(
            f"There is no column {', '.join(map(repr, absent))}.{hint} "
            f"There are {format_names(self.all)}."
        )


def normalise_id_columns(id_column: IdColumns) -> tuple[str, ...]:
    """Return the normalised id columns. Raises InvalidData if one is named twice."""
    if id_column is None or isinstance(id_column, str):
        return () if id_column is None else (normalise_text(id_column),)
    names = tuple(normalise_text(name) for name in id_column)
    if len(set(names)) < len(names):
        raise InvalidData("An id column is named twice.")
    return names


def choose_columns(
    names: Names, ids: Sequence[str], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns to cluster: ``columns`` if given, or all except the ids.

    Raises InvalidData if one is unknown, repeated or also an id, or if none remains.
    """
    names.require([*(columns or ()), *ids])
    id_names = set(ids)
    selection = [
        clean
        for name in columns or names.all
        if (clean := normalise_text(name)) not in id_names
    ]
    if columns and len(selection) < len(columns):
        raise InvalidData("A column cannot be both an id column and clustered.")
    if len(set(selection)) < len(selection):
        raise InvalidData("A column to cluster is named twice.")
    if not selection:
        raise InvalidData("There is no column to cluster.")
    return tuple(selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a table.

    id_column: the column or columns with the row ids. An id is text,
        normalised to NFKC; for several columns it is the JSON list of their texts.
    match_key_columns: the columns that replace ``id_column`` if rows are linked by match
        keys. Their cells may be empty, changed by a mapping, and also clustered.
    columns: the columns to cluster, in order. By default those of the dictionary or,
        without a dictionary, all that do not identify the rows.
    schema: the dictionary, which defines the columns. They are found by name.
    preparation: the treatment of categories and missing values of the fields.
    dialect: settings of a text file's dialect that are known.
    mapping: the translation of the table into the dictionary's terms.
    allow: names of guards to switch off; see :data:`~party_sdk.tables.guards.SWITCHES`.
    """

    id_column: IdColumns = None
    match_key_columns: Sequence[str] = ()
    columns: Sequence[str] | None = None
    schema: Schema | None = None
    preparation: Preparation | None = None
    dialect: Dialect = field(default_factory=Dialect)
    mapping: TableMapping | None = None
    allow: Sequence[str] = ()

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The normalised names of the id columns; empty if there are none."""
        return normalise_id_columns(self.id_column)

    @property
    def file_dialect(self) -> Dialect:
        """The mapping's dialect, overridden by ``dialect``; missing codes are combined."""
        if self.mapping is None:
            return self.dialect
        mapped_dialect = self.mapping.file
        codes = tuple(dict.fromkeys([*mapped_dialect.missing, *self.dialect.missing]))
        return replace(mapped_dialect, **{**self.dialect.changes, "missing": codes})


DEFAULTS = ReadOptions()
