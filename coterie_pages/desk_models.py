"""Pages of the desk at home: what waits for a person, and what that person decides."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from coterie_pages.models import FormField, Option, Screen


class PartyRow(Value):
    """A party of this home in a list.

    group: whether it waits for its person, runs, or has ended.
    said: what it waits for, or why it ended, in a sentence.
    since: since when it has been so; None where only the command line knows it.
    """

    session: str
    slot: str
    title: str = ""
    protocol: str = ""
    state: str
    group: Literal["asks", "runs", "ended"]
    said: str = ""
    since: AwareDatetime | None = None


class FieldGroup(Value):
    """Fields that are folded under a title, and groups within it.

    note: what is said of them together.
    """

    title: str
    fields: tuple[FormField, ...] = ()
    groups: tuple[FieldGroup, ...] = ()
    note: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether something in it is wrong, or not as usual."""
        return any(group.is_open for group in self.groups) or any(
            field.wrong or field.value not in ("", field.usual) for field in self.fields
        )


class TableScreen(Screen):
    """A page on which a file is chosen as a table, and how it is read is shown.

    names: the columns of the file.
    report: how it is read, a :class:`party_sdk.tables.CheckReport`; None where none was.
    checked: whether it was held against terms.
    """

    names: tuple[str, ...]
    report: Any
    checked: bool

    @property
    def columns(self) -> dict[str, Any]:
        """Return how each column is read, by its name."""
        columns = () if self.report is None else self.report.columns
        return {column.name: column for column in columns}

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what hinders the table, with lines."""
        return () if self.report is None else self.report.sentences

    @property
    def fits(self) -> bool:
        """Return whether the session may have the table."""
        return self.checked and bool(self.names) and not self.problems


class CellLine(Value):
    """A text of the table, in so many rows, and what it stands for.

    chosen: the value of the option; empty where a person has to choose.
    """

    text: str = Field(repr=False)
    n_rows: int
    chosen: str


class VariableSource(Value):
    """A variable of the session, and how the table has it.

    found: what was found in the table, a :class:`party_sdk.tables.drafts.ColumnProposal`.
    said: what the mapping says, a :class:`party_sdk.tables.mapping.ColumnMapping`.
    source: the column of the table; empty where none is.
    is_drafted: whether it is the one that was found.
    candidates: the table's columns, the nearest first.
    conversions: of units, that lead to the variable's.
    options: what a text may stand for.
    asks: whether a person has to say something.
    """

    found: Any = Field(repr=False)
    said: Any = Field(repr=False)
    source: str = ""
    is_drafted: bool = False
    candidates: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()
    cells: tuple[CellLine, ...] = ()
    more_cells: int = 0
    options: tuple[Option, ...] = ()
    asks: bool = False

    @property
    def written(self) -> str:
        """Return the sign between thousands, '_', and the decimal sign; empty as found."""
        if not self.said.says_signs:
            return ""
        return f"{self.said.thousands or ''}_{self.said.decimal or ''}"

    @property
    def is_number(self) -> bool:
        """Return whether it holds numbers."""
        return self.found.type in {"number", "integer"}

    @property
    def has_minus(self) -> bool:
        """Return whether numbers with another minus sign are in the column."""
        is_in_table = self.is_drafted and self.found.minus is not None
        return is_in_table or self.said.minus is not None

    @property
    def has_limits(self) -> bool:
        """Return whether limits of detection are in the column."""
        is_in_table = self.is_drafted and any(
            cell.is_limit for cell in self.found.cells
        )
        return is_in_table or self.said.limits is not None


class RowsPreview(Value):
    """The first rows of a table, for its own people."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = Field(default=(), repr=False)


class SlotLine(Value):
    """A place as it stands in the form; row and column count from 1."""

    name: str = ""
    title: str = ""
    row: str = "1"
    column: str = "1"
    expected: str = ""


class ColumnGroup(Value):
    """What is said of the columns of one group; ``number`` counts from 1.

    fields: the table from which its dictionary is drafted, and how.
    elsewhere: the same of files outside the folder.
    variables: rows as :class:`party_sdk.tables.variables.Variable`.
    listed: the table whose variables these are; empty where they are typed.
    notes, wrong: by the number of a row, from 1.
    """

    number: int = Field(ge=1)
    fields: tuple[FormField, ...]
    elsewhere: FieldGroup
    variables: tuple[Any, ...] = ()
    listed: str = ""
    notes: dict[int, str] = Field(default={})
    wrong: dict[int, str] = Field(default={})
