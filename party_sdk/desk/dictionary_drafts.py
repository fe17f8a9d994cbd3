"""The draft of a dictionary in a form: inferred from a table, or typed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.schema import Schema
from party_sdk.desk.responses import Form, path_in
from party_sdk.tables import ReadOptions
from party_sdk.tables.drafts import draft_dictionary, find_id_column
from party_sdk.tables.variables import DictionaryDraft, Variable

MOST_VARIABLES: Final = 150
"""Maximum number of variables in a form; a longer dictionary needs a file."""

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
    """The form fields that describe the variables of one column group.

    path: the table that the variables are inferred from; None if they are typed.
    ids: the names of the id columns.
    levels: whether the distinct values of text columns become levels.
    listed: the ``key`` of the table whose variables the form lists.
    rows: the fields of each variable.
    """

    path: Path | None
    ids: tuple[str, ...]
    levels: bool
    listed: str
    rows: tuple[dict[str, str], ...]

    @classmethod
    def from_form(cls, form: Form, number: int, folder: Path) -> Self:
        """Read the draft of column group ``number``, counted from 1, from a form."""
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
        """Return a string that identifies the table, its id columns and ``levels``."""
        if self.path is None:
            return ""
        return " | ".join([str(self.path), *self.ids, *["levels"] * self.levels])

    @property
    def is_listed(self) -> bool:
        """Return whether the listed variables are typed, or come from the chosen table."""
        return self.path is None or self.listed == self.key

    def with_ids(self) -> Self:
        """Return the draft, with the detected id column if its table is new."""
        if self.path is None or self.listed.partition(" | ")[0] == str(self.path):
            return self
        if self.ids and not self.listed:
            return self  # the ids were typed together with the table
        options = ReadOptions(allow=("running-number",))
        _, id_column = find_id_column(self.path, options)
        return replace(self, ids=() if id_column is None else (id_column,))

    def dictionary(self) -> tuple[Schema, list[str]]:
        """Return the dictionary of all used variables, and the names of the others.

        Raises InvalidParameters if the form has not listed the table's variables yet.
        Raises InvalidData if the table cannot be read, or if a variable is invalid.
        """
        draft = self.draft()
        if not self.is_listed:
            raise InvalidParameters(
                "Choose which variables to cluster, which to describe and which to "
                "leave out: they are now listed here."
            )
        schema = draft.to_schema()
        used = set(schema.used.names)
        return schema.used, [name for name in schema.names if name not in used]

    def draft(self) -> DictionaryDraft:
        """Return a draft of the dictionary, from the variables that the form lists.

        If the form does not list the variables of the chosen table yet, the draft is
        made from the table.

        Raises InvalidParameters if the table has more variables than fit in a form.
        Raises InvalidData if the table cannot be read.
        """
        if self.is_listed:
            # decimals apply only to the type "number"
            rows = (
                {**cells, "decimals": cells["decimals"] * (cells["type"] == "number")}
                for cells in self.rows
            )
            return DictionaryDraft(variables=tuple(Variable(**cells) for cells in rows))
        options = ReadOptions(id_column=self.ids or None)
        draft = draft_dictionary(str(self.path), options, lambda *_: self.levels)
        if len(draft.variables) > MOST_VARIABLES:
            raise InvalidParameters(
                f"The table has {len(draft.variables)} columns, and a form allows "
                f"{MOST_VARIABLES}. Write the dictionary in a file: coterie schema infer."
            )
        return draft
