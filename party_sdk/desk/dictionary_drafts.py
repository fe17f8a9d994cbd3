"""A dictionary drafted from a table: its variables in a form, to be changed row by row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.terms.schema import Schema
from coterie_pages.desk_models import VariableLine
from coterie_pages.models import Option
from party_sdk.desk.responses import Form

if TYPE_CHECKING:
    from party_sdk.tables.variables import DictionaryDraft

MOST_VARIABLES: Final = 150
"""More do not fit a form: they are written in a file."""

ROLES: Final = (
    Option(value="cluster", text="cluster"),
    Option(value="describe", text="describe"),
    Option(value="leave-out", text="leave out"),
)
TYPES: Final = (
    Option(value="number", text="number"),
    Option(value="integer", text="whole number"),
    Option(value="boolean", text="yes or no"),
    Option(value="string", text="words"),
    Option(value="date", text="date"),
)
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


class ShownVariables(NamedTuple):
    """The variables of a table as a form shows them, and of which table they are."""

    lines: tuple[VariableLine, ...] = ()
    listed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """What a form says of the table from which a column group's dictionary is drafted.

    ids: columns that name rows.
    levels: whether the words of all columns become levels.
    listed: the table whose variables were shown, as ``key`` names it.
    rows: the cells of each variable, as they stand in the form.
    """

    path: Path | None
    ids: tuple[str, ...]
    levels: bool
    listed: str
    rows: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, form: Form, number: int, folder: Path) -> Self:
        """Return what stands in the fields of a column group, counted from 1."""
        table = form.one(f"table.{number}").strip()
        ids = (name.strip() for name in form.one(f"ids.{number}").split(","))
        columns = [form.all(f"variable.{cell}.{number}") for cell in _CELLS]
        return cls(
            path=folder / Path(table).expanduser() if table else None,
            ids=tuple(name for name in ids if name),
            levels=bool(form.one(f"levels.{number}")),
            listed=form.one(f"listed.{number}"),
            rows=tuple(
                dict(zip(_CELLS, cells, strict=True))
                for cells in zip(*columns, strict=False)
            ),
        )

    @property
    def key(self) -> str:
        """Return what the variables depend on: the table, its ids, whether levels count."""
        return " | ".join([str(self.path), *self.ids, *["levels"] * self.levels])

    def dictionary(self) -> tuple[Schema, list[str]]:
        """Return the dictionary of the form's rows, and the names that it leaves out.

        Raises InvalidParameters if the variables were not shown yet, or there are more
            than fit a form.
        Raises InvalidData if the table cannot be read, or a row describes nothing.
        """
        if self.listed != self.key:
            drafted = self._infer()
            if len(drafted.variables) > MOST_VARIABLES:
                raise InvalidParameters(
                    f"The table has {len(drafted.variables)} columns, and a form takes "
                    f"{MOST_VARIABLES}. Write the dictionary in a file: coterie schema infer."
                )
            raise InvalidParameters(
                "Say which variables to cluster, which to describe and which to leave out: "
                "they are listed here now. Then look at the terms again."
            )
        schema = self._draft().schema()
        used = set(schema.used.names)
        return schema.used, [name for name in schema.names if name not in used]

    def read_variables(self) -> ShownVariables:
        """Return all variables; none where no table is named, or it cannot be read."""
        if self.path is None:
            return ShownVariables()
        try:
            drafted = self._draft() if self.listed == self.key else self._infer()
        except CoterieError:
            return ShownVariables()  # said where the dictionary is drafted
        if len(drafted.variables) > MOST_VARIABLES:
            return ShownVariables()
        faults = drafted.faults() if self.listed == self.key else {}
        lines = tuple(
            VariableLine(
                **{name: row.cells()[name] for name in _CELLS},
                hint=drafted.reasons.get(row.name, ""),
                wrong=faults.get(number, ""),
            )
            for number, row in enumerate(drafted.variables, 1)
        )
        return ShownVariables(lines, self.key)

    def _infer(self) -> DictionaryDraft:
        """Return the draft of the table itself."""
        from party_sdk.tables import How
        from party_sdk.tables.drafts import infer

        how = How(id_column=self.ids or None)
        return infer(str(self.path), how, lambda *_: self.levels)

    def _draft(self) -> DictionaryDraft:
        """Return the draft of the form's rows.

        Raises InvalidData if there are none.
        """
        from party_sdk.tables.variables import DictionaryDraft, Variable

        if not self.rows:
            raise InvalidData("No variable is listed.")
        rows = ({**cells, "decimals": _digits(cells)} for cells in self.rows)
        return DictionaryDraft(variables=tuple(Variable(**cells) for cells in rows))


def _digits(cells: dict[str, str]) -> str:
    """Return the digits behind the point, which only numbers have."""
    return cells["decimals"] if cells["type"] == "number" else ""
