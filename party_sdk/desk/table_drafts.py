"""A dictionary drafted from a table: every field is shown, and taken by a tick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from clustering_protocols.errors import CoterieError, InvalidParameters
from clustering_protocols.schema import Schema
from coterie_pages.models.desk_coordinator import DraftedField
from party_sdk.desk.answers import Form


class Shown(NamedTuple):
    """The fields of a table as a form shows them, and of which table they are."""

    fields: tuple[DraftedField, ...] = ()
    listed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """What a form says of the table from which a column group's dictionary is drafted.

    Attributes
    ----------
    path : Path or None
    ids : tuple of str
        Columns that name rows.
    levels : bool
        Whether the words of all columns become levels.
    listed : str
        The table whose fields were shown, as ``key`` names it.
    taken : set of str
        Ticked fields.
    """

    path: Path | None
    ids: tuple[str, ...]
    levels: bool
    listed: str
    taken: frozenset[str]

    @classmethod
    def of(cls, form: Form, number: int, folder: Path) -> Self:
        """Return what stands in the fields of a column group, counted from 1."""
        table = form.one(f"table.{number}").strip()
        ids = (name.strip() for name in form.one(f"ids.{number}").split(","))
        return cls(
            path=folder / Path(table).expanduser() if table else None,
            ids=tuple(name for name in ids if name),
            levels=bool(form.one(f"levels.{number}")),
            listed=form.one(f"listed.{number}"),
            taken=frozenset(form.all(f"field.{number}")),
        )

    @property
    def key(self) -> str:
        """Return what the fields depend on: the table, and its ids."""
        return " | ".join([str(self.path), *self.ids])

    def dictionary(self) -> tuple[Schema, list[str]]:
        """Return the dictionary of the ticked fields, and the names of the others.

        Raises
        ------
        InvalidParameters
            If the fields were not shown yet, or none is ticked.
        InvalidData
            If the table cannot be read.
        """
        from party_sdk.tables import How, examine
        from party_sdk.tables.dictionaries import infer

        how = How(id_column=self.ids or None)
        if self.listed != self.key:
            examine(str(self.path), how)[0].require_none()
            raise InvalidParameters(
                "Tick the fields to cluster, which are listed here now, and leave outcomes "
                "out. Then look at the terms again."
            )
        if not self.taken:
            raise InvalidParameters("No field is ticked: tick those to cluster.")
        schema, left = infer(str(self.path), how, self._has_levels)
        fields = tuple(each for each in schema.fields if each.name in self.taken)
        others = [each.name for each in schema.fields if each.name not in self.taken]
        if not fields:
            raise InvalidParameters("Of the ticked fields none can be described.")
        return schema.model_copy(update={"fields": fields}), [*others, *left]

    def shown(self) -> Shown:
        """Return all fields; none where no table is named, or it cannot be read."""
        from party_sdk.tables import How, examine

        if self.path is None:
            return Shown()
        try:
            report, _ = examine(str(self.path), How(id_column=self.ids or None))
        except CoterieError:
            return Shown()  # said where the dictionary is drafted
        known = self.listed == self.key
        fields = tuple(
            DraftedField(
                name=each.name,
                kind=each.type,
                taken=each.name in self.taken
                if known
                else self.levels or each.type != "words",
            )
            for each in report.columns
        )
        return Shown(fields, self.key if fields else "")

    def _has_levels(self, name: str, levels: object) -> bool:
        """Return whether a column of words is described: it is ticked."""
        del levels
        return name in self.taken
