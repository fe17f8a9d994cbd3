"""Models of the desk's pages."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.terms.terms import Slot
from coterie_pages.models import FormField, Screen


class PartyRow(Value):
    """A party of this home in a list.

    group: whether it waits for its person, runs, or has ended.
    sentence: what it waits for, or why it ended.
    since: when this state began; None for a party begun on the command line.
    """

    session: str
    slot: str
    title: str = ""
    protocol: str = ""
    state: str
    group: Literal["asks", "runs", "ended"]
    sentence: str = ""
    since: AwareDatetime | None = None


class FieldGroup(Value):
    """Fields that are folded under a title, with a note, and groups within it."""

    title: str
    fields: tuple[FormField, ...] = ()
    groups: tuple[FieldGroup, ...] = ()
    note: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether a field in it has an error, or a value other than the default."""
        return any(group.is_open for group in self.groups) or any(
            field.wrong or field.value not in ("", field.usual) for field in self.fields
        )


class RowsPreview(Value):
    """The first rows of a table, for the people who hold it."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = Field(default=(), repr=False)


class TableScreen(Screen):
    """A page on which a file is chosen as a table, with a report of how it is read.

    The values below are those of a page without a file.

    path: the chosen file; ``csv``, ``sheet`` and ``skip`` say how it is written.
    names: the columns of the file.
    report: a :class:`party_sdk.tables.CheckReport`; None if nothing was read.
    checked: whether the table was checked against terms.
    """

    path = csv = sheet = skip = ""
    names: tuple[str, ...] = ()
    sheets = ids = clustered = linking = warnings = ()
    report: Any = None
    checked = described = is_mapped = mends = is_named = False
    first = RowsPreview()

    @property
    def columns(self) -> dict[str, Any]:
        """Return the report on each column, by its name."""
        columns = () if self.report is None else self.report.columns
        return {column.name: column for column in columns}

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problems that prevent the use of the table, with lines."""
        return () if self.report is None else self.report.problem_sentences

    @property
    def fits(self) -> bool:
        """Return whether the table can take part in the session."""
        return self.checked and bool(self.names) and not self.problems


class CellLine(Value):
    """A text of the table, the number of rows with it, and the value that it stands for.

    chosen: the value of the option; empty if a person has to choose.
    """

    text: str = Field(repr=False)
    n_rows: int
    chosen: str


class VariableSource(Value):
    """A variable of the session, and where the table has it.

    proposal: a :class:`party_sdk.tables.drafts.ColumnProposal`.
    mapping: a :class:`party_sdk.tables.mapping.ColumnMapping`.
    source: the column of the table; empty without one.
    is_drafted: whether the proposal named this column.
    candidates: the table's columns, the most similar first.
    conversions: names of conversions into the variable's unit.
    options: possible meanings of a text.
    asks: whether a person has to decide something.
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
    def written(self) -> str:
        """Return thousands separator, '_' and decimal sign; empty to detect them."""
        if not self.mapping.sets_signs:
            return ""
        return f"{self.mapping.thousands or ''}_{self.mapping.decimal or ''}"

    @property
    def is_number(self) -> bool:
        """Return whether the variable holds numbers."""
        return self.proposal.type in {"number", "integer"}

    @property
    def has_minus(self) -> bool:
        """Return whether the column has numbers with an unusual minus sign."""
        is_in_table = self.is_drafted and self.proposal.minus is not None
        return is_in_table or self.mapping.minus is not None

    @property
    def has_limits(self) -> bool:
        """Return whether the column has limits of detection."""
        is_in_table = self.is_drafted and any(
            cell.is_limit for cell in self.proposal.cells
        )
        return is_in_table or self.mapping.limits is not None


class SlotLine(Value):
    """A slot in the form; row and column groups count from 1."""

    name: str = ""
    title: str = ""
    row: str = "1"
    column: str = "1"
    expected: str = ""

    @classmethod
    def of(cls, slot: Slot) -> Self:
        """Return a slot of a layout."""
        row, column = str(slot.row + 1), str(slot.column + 1)
        return cls(name=slot.name, title=slot.title, row=row, column=column)


class ColumnGroup(Value):
    """The variables of a column group in the form; ``number`` counts from 1.

    fields, elsewhere: form fields for the table from which the dictionary is drafted: in
        the folder of tables, or elsewhere.
    variables: rows as :class:`party_sdk.tables.variables.Variable`.
    listed: the table with these variables; empty if they are typed.
    notes, wrong: notes and errors by the number of a row, from 1.
    """

    number: int = Field(ge=1)
    fields: tuple[FormField, ...]
    elsewhere: FieldGroup
    variables: tuple[Any, ...] = ()
    listed: str = ""
    notes: dict[int, str] = Field(default={})
    wrong: dict[int, str] = Field(default={})
