"""A table is mended at the desk: where each variable comes from, and what cells mean."""

from __future__ import annotations

from pydantic import Field

from clustering_protocols.common.values import Value
from coterie_pages.models.desk import ColumnChoice, OwnChoices, TableFile
from coterie_pages.models.fields import Option
from coterie_pages.models.screens import Screen


class CellLine(Value):
    """A text of the table, in so many rows, and what it stands for.

    chosen: the value of the option.
    """

    text: str = Field(repr=False)
    n_rows: int
    chosen: str


class VariableSource(Value):
    """A variable of the session, and how the table has it.

    source: the column of the table; empty where none is.
    candidates: the table's columns, the nearest first.
    why, certainty: how the source was found.
    convert: the name of a conversion of units, or empty.
    dates: orders of dates, with blanks between.
    options: what a text may stand for.
    asks: whether a person has to say something.
    """

    name: str
    title: str = ""
    type: str
    unit: str = ""
    source: str = ""
    candidates: tuple[str, ...] = ()
    why: str = ""
    certainty: str = ""
    convert: str = ""
    conversions: tuple[str, ...] = ()
    factor: str = ""
    offset: str = ""
    thousands: str = ""
    dates: str = ""
    limits: str = ""
    has_limits: bool = False
    cells: tuple[CellLine, ...] = ()
    more_cells: int = 0
    options: tuple[Option, ...] = ()
    asks: bool = False


class RowsPreview(Value):
    """The first rows of a table, for its own people."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = Field(default=(), repr=False)


class MendedTable(Screen):
    """How a table becomes what a dictionary describes, to be changed and tried.

    place: the address of the page, below the root.
    session, slot: where the table is to take part; empty before any invitation.
    dictionary: the path of the dictionary, before any invitation.
    mapping: what holds so far, as a file has it.
    before, after: the first rows, as the table has them and as they are prepared.
    rows: how many rows are read, of those of the file.
    lines: lines that are left out, with blanks between.
    columns: those of the table, to choose what names rows.
    omitted: cells by which rows are left out: ``Column = cell``, one a line.
    problems, warnings: what hinders it, and what may be wrong.
    """

    template = "desk/mapping.html.j2"
    place: str
    title: str = ""
    session: str = ""
    slot: str = ""
    dictionary: str = ""
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    mapping: str = Field(default="", repr=False)
    variables: tuple[VariableSource, ...] = ()
    before: RowsPreview = RowsPreview()
    after: RowsPreview = RowsPreview()
    rows: str = ""
    lines: str = ""
    omitted: str = Field(default="", repr=False)
    columns: tuple[str, ...] = ()
    fits: bool = False
    problems: tuple[str, ...] = Field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
    confirm: bool = True
    notify: str = ""
    choices: OwnChoices | None = None


class OwnTable(Screen):
    """A table is looked at before any invitation, with or without a dictionary.

    folder: whose files are offered.
    dictionary: the path of a dictionary; empty where none was named.
    columns: how each is read.
    first: the first rows.
    """

    template = "desk/own-table.html.j2"
    folder: str
    files: tuple[TableFile, ...] = ()
    more_files: int = Field(default=0, ge=0)
    path: str = ""
    csv: str = ""
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    skip: str = ""
    ids: tuple[str, ...] = ()
    dictionary: str = ""
    rows: str = ""
    dialect: dict[str, str] = Field(default={})
    names: tuple[str, ...] = ()
    columns: tuple[ColumnChoice, ...] = ()
    first: RowsPreview = RowsPreview()
    problems: tuple[str, ...] = Field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
