"""What a drafted mapping says, how certain that is, and what else there is to choose."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from party_sdk.tables.mapping.model import (
    ColumnMapping,
    DateOrder,
    Limit,
    OmittedRows,
    TableMapping,
    Thousands,
)
from party_sdk.tables.parsing.dialect import Dialect


class Certainty(StrEnum):
    """How much a person has to look at a proposal."""

    CERTAIN = "certain"
    GUESS = "guess"
    OPEN = "open"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LevelProposal(_Part):
    """A text of the table, and the level that it may stand for.

    text: a value of cells: for the operator's own screen alone.
    count: in how many rows it stands.
    level: of the dictionary; None where nobody knows yet, or it is no value.
    is_missing: whether it stands for no value.
    is_same: whether the table has it as the dictionary does.
    is_limit: whether it is a limit of detection, such as ``<0.1``.
    """

    text: str
    count: int
    level: str | None = None
    is_missing: bool = False
    is_same: bool = False
    is_limit: bool = False
    certainty: Certainty


class ColumnProposal(_Part):
    """A column of the session, and where the table may have it.

    name, title, type, unit: as the dictionary says.
    levels: those of the dictionary, to choose from.
    source: the column of the table; None where none is near.
    candidates: the table's columns to choose from, the nearest first.
    why: how the source was found.
    cells: texts that stand for a level or for no value, the most frequent first.
    convert: the name of a conversion of units; empty where none is known.
    thousands, dates: how the column is written, where its file is written otherwise.
    limits: what limits of detection become; None where nobody has said.
    """

    name: str
    title: str = ""
    type: str
    unit: str = ""
    levels: tuple[str, ...] = ()
    source: str | None = None
    certainty: Certainty = Certainty.OPEN
    why: str = ""
    candidates: tuple[str, ...] = ()
    cells: tuple[LevelProposal, ...] = ()
    convert: str = ""
    thousands: Thousands | None = None
    dates: tuple[DateOrder, ...] = ()
    limits: Limit | None = None

    @property
    def is_open(self) -> bool:
        """Return whether something is left that a person has to say."""
        return self.source is None or any(map(self.asks, self.cells))

    def asks(self, cell: LevelProposal) -> bool:
        """Return whether a person has to say what a cell stands for."""
        if cell.is_limit and self.limits is not None:
            return False
        return cell.certainty is Certainty.OPEN

    def to_mapping(self) -> ColumnMapping | None:
        """Return what the mapping says of the column; None where nothing is to say."""
        if self.source is None:
            return None
        said = ColumnMapping(
            source=None if self.source == self.name else self.source,
            levels={
                cell.text: cell.level
                for cell in self.cells
                if cell.level is not None and not cell.is_same
            },
            convert=self.convert or None,
            missing=tuple(cell.text for cell in self.cells if cell.is_missing),
            thousands=self.thousands,
            dates=self.dates,
            limits=self.limits if any(c.is_limit for c in self.cells) else None,
        )
        return None if said == ColumnMapping() else said


class Proposal(_Part):
    """A draft of a mapping, with all that a person chooses from.

    file: the table's name, without its folder.
    dialect: what is known of how it is written.
    columns: those of the session, in the dictionary's order.
    unused: columns of the table that nothing comes from.
    totals: rows that seem to sum up others, by the column and the cell that say so.
    copies: lines that repeat an earlier row, its id and all the rest.
    """

    file: str
    rows: int
    dialect: Dialect = Dialect()
    columns: tuple[ColumnProposal, ...]
    unused: tuple[str, ...] = ()
    totals: dict[str, tuple[str, ...]] = {}
    copies: tuple[int, ...] = ()

    @property
    def n_open(self) -> int:
        """Return of how many columns something is left to say."""
        return sum(column.is_open for column in self.columns)

    def to_mapping(self) -> TableMapping:
        """Return the draft: what is certain, and what is a guess."""
        pairs = ((each.name, each.to_mapping()) for each in self.columns)
        return TableMapping(
            file=self.dialect,
            columns={name: said for name, said in pairs if said is not None},
            leave_out=OmittedRows(lines=self.copies, values=self.totals),
        )
