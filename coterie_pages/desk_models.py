"""Models of the pages of the desk, the local web application of an institution."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from clustering_protocols.common.values import Value
from clustering_protocols.terms.terms import Slot
from coterie_pages.models import FormField, Screen


class FieldGroup(Value):
    """A collapsible group of form fields with a title, a note, and nested groups."""

    title: str
    fields: tuple[FormField, ...] = ()
    groups: tuple[FieldGroup, ...] = ()
    note: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether a field in the group has an error or a non-default value."""
        return any(group.is_open for group in self.groups) or any(
            f.error or f.value not in ("", f.default) for f in self.fields
        )


class RowsPreview(Value):
    """The first rows of a table, shown only to the institution that holds it."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = Field(default=(), repr=False)


class TableScreen(Screen):
    """A page on which the user chooses a file as the table, and sees how it was read.

    The class attributes are the values of a page on which no file has been chosen.

    path: the chosen file; ``csv``, ``sheet`` and ``skip`` say how to read it.
    names: the names of the columns in the file.
    report: a :class:`party_sdk.tables.CheckReport`; None if no file was read.
    checked: whether the table was checked against the terms of a session.
    """

    path = csv = sheet = skip = ""
    names: tuple[str, ...] = ()
    sheets = ids = clustered = linking = warnings = ()
    report: Any = None
    checked = described = is_mapped = mends = is_named = False
    first = RowsPreview()

    @property
    def columns(self) -> dict[str, Any]:
        """Return the report's columns by name."""
        columns = () if self.report is None else self.report.columns
        return {column.name: column for column in columns}

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problems that prevent the use of the table, with line numbers."""
        return () if self.report is None else self.report.problem_sentences

    @property
    def fits(self) -> bool:
        """Return whether the table can take part in the session."""
        return self.checked and bool(self.names) and not self.problems


class CellLine(Value):
    """A distinct text in a column; ``chosen`` is the option chosen for it, or empty."""

    text: str = Field(repr=False)
    n_rows: int
    chosen: str


class VariableSource(Value):
    """A variable of the session, with the column of the table that supplies its values.

    proposal: a :class:`party_sdk.tables.drafts.ColumnProposal`.
    mapping: a :class:`party_sdk.tables.mapping.ColumnMapping`.
    source: the name of the column; empty if the table has none for this variable.
    is_drafted: whether the proposal itself named this column.
    candidates: the columns of the table, the most similar name first.
    conversions: the names of the available conversions into the variable's unit.
    options: the values that a text can mean.
    asks: whether the user still has to make a decision about this variable.
    """

    proposal: Any = Field(repr=False)
    mapping: Any = Field(repr=False)
    source: str = ""
    is_drafted: bool = False
    candidates: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()
    cells: tuple[CellLine, ...] = ()
    more_cells: int = 0
    options: dict[str, str] = Field(default={})
    asks: bool = False

    @property
    def number_format(self) -> str:
        """Return the mapping's thousands separator, ``_`` and decimal sign, or ''."""
        if not self.mapping.sets_signs:
            return ""
        return f"{self.mapping.thousands or ''}_{self.mapping.decimal or ''}"

    @property
    def is_number(self) -> bool:
        """Return whether the variable holds numbers."""
        return self.proposal.type in {"number", "integer"}

    @property
    def has_unusual_minus_sign(self) -> bool:
        """Return whether some numbers of the column have a minus sign other than ``-``."""
        is_in_table = self.is_drafted and self.proposal.minus is not None
        return is_in_table or self.mapping.minus is not None

    @property
    def has_limits(self) -> bool:
        """Return whether the column has values below or above a limit of detection."""
        is_in_table = self.is_drafted and any(
            cell.is_limit for cell in self.proposal.cells
        )
        return is_in_table or self.mapping.limits is not None


class SlotLine(Value):
    """A slot in the form for a new session; row and column groups are numbered from 1."""

    name: str = ""
    title: str = ""
    row: str = "1"
    column: str = "1"
    expected: str = ""

    @classmethod
    def of(cls, slot: Slot) -> Self:
        """Create the form line for a slot of a layout."""
        row, column = str(slot.row + 1), str(slot.column + 1)
        return cls(name=slot.name, title=slot.title, row=row, column=column)


class ColumnGroup(Value):
    """The variables of one column group in the form; ``number`` counts from 1.

    fields: form fields for a table in the folder of tables, from which the dictionary
        is drafted.
    elsewhere: form fields for the path of another table, or of a finished dictionary.
    variables: one :class:`party_sdk.tables.variables.Variable` per row.
    listed: the table that lists these variables; empty if the user types them.
    notes, errors: notes and error messages by row number, counted from 1.
    """

    number: int = Field(ge=1)
    fields: tuple[FormField, ...]
    elsewhere: FieldGroup
    variables: tuple[Any, ...] = ()
    listed: str = ""
    notes: dict[int, str] = Field(default={})
    errors: dict[int, str] = Field(default={})
