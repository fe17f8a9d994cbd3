"""A dictionary in a form, drafted from a table or typed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.schema import Schema
from party_sdk.desk.responses import Form, path_in
from party_sdk.tables import ReadOptions, examine_table
from party_sdk.tables.drafts import find_id_column, infer
from party_sdk.tables.variables import DictionaryDraft, Variable

MOST_VARIABLES: Final = 150
"""Most variables of a form; a longer dictionary is written in a file."""

ROLES: Final = {"cluster": "cluster", "describe": "describe", "leave-out": "leave out"}
TYPES: Final = {
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "string": "words",
    "date": "date",
}
_CELLS: Final = (
    "name",
    "role",
    "type",
    "unit",
    "minimum",
    "maximum",
    "levels",
    "title",
    "decimals",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """The variables of a column group in a form.

    path: the table behind the draft; None if the variables are typed.
    ids: the id columns.
    levels: whether the words of text columns become levels.
    listed: the ``key`` of the table whose variables the form shows.
    rows: the fields of each variable.
    """

    path: Path | None
    ids: tuple[str, ...]
    levels: bool
    listed: str
    rows: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, form: Form, number: int, folder: Path) -> Self:
        """Read the fields of a column group, counted from 1."""
        table = form.get(f"elsewhere.{number}").strip() or form.get(f"table.{number}")
        ids = (name.strip() for name in form.get(f"ids.{number}").split(","))
        columns = [form.get_all(f"variable.{cell}.{number}") for cell in _CELLS]
        rows = (
            dict(zip(_CELLS, map(str.strip, cells), strict=True))
            for cells in zip(*columns, strict=False)
        )
        return cls(
            path=path_in(folder, table) if table else None,
            ids=tuple(name for name in ids if name),
            levels=bool(form.get(f"levels.{number}")),
            listed=form.get(f"listed.{number}"),
            rows=tuple(row for row in rows if row["name"]),
        )

    @property
    def key(self) -> str:
        """Return the inputs behind the variables: the table, its ids, the levels."""
        if self.path is None:
            return ""
        return " | ".join([str(self.path), *self.ids, *["levels"] * self.levels])

    @property
    def is_listed(self) -> bool:
        """Return whether the form lists its current table's variables, or typed ones."""
        return self.path is None or self.listed == self.key

    def with_ids(self) -> Self:
        """Return the draft with the id column of a newly chosen table."""
        if self.path is None or self.listed.partition(" | ")[0] == str(self.path):
            return self
        if self.ids and not self.listed:
            return self  # the form names ids and table at the same time
        options = ReadOptions(allow=("running-number",))
        id_column = find_id_column(
            self.path, options, examine_table(self.path, options)[0]
        )
        return replace(self, ids=() if id_column is None else (id_column,))

    def dictionary(self) -> tuple[Schema, list[str]]:
        """Return the dictionary, and the names that it leaves out.

        Raises InvalidParameters if the form did not show the table's variables yet.
        Raises InvalidData if the table cannot be read, or a row is empty.
        """
        draft = self.draft()
        if not self.is_listed:
            raise InvalidParameters(
                "Say which variables to cluster, which to describe and which to leave "
                "out: they are listed here now."
            )
        schema = draft.to_schema()
        used = set(schema.used.names)
        return schema.used, [name for name in schema.names if name not in used]

    def draft(self) -> DictionaryDraft:
        """Return the draft of the form's rows or, if they are outdated, of the table.

        Raises InvalidParameters if the table has more variables than fit a form.
        Raises InvalidData if it cannot be read.
        """
        if self.is_listed:
            # only numbers have decimals
            rows = (
                {**cells, "decimals": cells["decimals"] * (cells["type"] == "number")}
                for cells in self.rows
            )
            return DictionaryDraft(variables=tuple(Variable(**cells) for cells in rows))
        options = ReadOptions(id_column=self.ids or None)
        draft = infer(str(self.path), options, lambda *_: self.levels)
        if len(draft.variables) > MOST_VARIABLES:
            raise InvalidParameters(
                f"The table has {len(draft.variables)} columns, and a form takes "
                f"{MOST_VARIABLES}. Write the dictionary in a file: coterie schema infer."
            )
        return draft
