"""What a reader's process is asked for, and what it answers: JSON beside two files.

Rows lie in ``Scratch.numbers``, ids and other columns in ``Scratch.cells``: anyone who asks
maps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import pyarrow as pa
from pyarrow import types
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidData
from party_sdk.tables import table_examination
from party_sdk.tables.columns import Column, is_numeric, numbers, texts
from party_sdk.tables.formats.study_files import StudyLabels, codebook
from party_sdk.tables.parsing.limits import Limits
from party_sdk.tables.parsing.row_places import FileLines, NumberedRows, RemainingRows
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport, Finding, Findings
from party_sdk.tables.scratch import Scratch
from party_sdk.tables.source import Again, Source
from party_sdk.tables.source_opening import open_source
from party_sdk.tables.spool import ColumnSpool, Spool, mapped_ids
from party_sdk.tables.table import Table, UnmappedCells


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReadTable(_Message):
    """Everything that is not in the report of a table without problems.

    described: the columns of the rows in ``Scratch.numbers``.
    headers: what the table calls them; none where no mapping changes it.
    changed: the places of those whose cells stand in ``Scratch.original`` too.
    """

    naming: tuple[str, ...]
    described: tuple[Column, ...]
    places: FileLines | NumberedRows | RemainingRows
    headers: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()
    unfit: tuple[Finding, ...]
    more_unfit: int = Field(ge=0)

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return what is to be said of a table whose cells lie in a scratch."""
        return cls(
            naming=table.naming,
            described=table.described,
            places=table.places,
            headers=table.unmapped.headers if table.unmapped else (),
            changed=table.unmapped.changed if table.unmapped else (),
            unfit=tuple(table.unfit.shown),
            more_unfit=table.unfit.more,
        )

    def open_unmapped(self, scratch: Scratch, n_rows: int) -> UnmappedCells | None:
        """Return what a mapping changed; None where it changed nothing."""
        if not self.headers:
            return None
        n_columns = len(self.described)
        if len(self.headers) != n_columns or not set(self.changed) <= set(
            range(n_columns)
        ):
            raise ValueError("a mapping changes columns that are not there")
        return UnmappedCells.of(self.headers, self.changed, scratch.original, n_rows)


class ExaminedTable(_Message):
    """A report, and a table unless there are problems."""

    kind: Literal["examined"] = "examined"
    report: CheckReport
    table: ReadTable | None

    def open_table(
        self, file: Path, scratch: Scratch
    ) -> tuple[CheckReport, Table | None]:
        """Return report and table, whose cells are mapped.

        Raises ValueError if the scratch holds another number of rows.
        """
        if self.table is None:
            return self.report, None
        said, n_rows = self.table, self.report.rows
        ids = mapped_ids(scratch.cells) if said.naming else None
        if ids is not None and len(ids) != n_rows:
            raise ValueError("the file holds another number of ids")
        return self.report, Table(
            report=self.report,
            naming=said.naming,
            file=file,
            described=said.described,
            ids=ids,
            places=said.places,
            unfit=Findings(said.unfit, said.more_unfit),
            spool=Spool(len(said.described), scratch.numbers, n_rows),
            unmapped=said.open_unmapped(scratch, n_rows),
        )


class CellsRead(_Message):
    """The names of all columns; the cells of those that were asked for lie in a scratch.

    left_out: what was wrong with lines that were not read.
    counts: what is counted in it: lines or rows.
    places: where the rows stand whose cells were read.
    """

    kind: Literal["cells"] = "cells"
    names: tuple[str, ...]
    places: FileLines | NumberedRows | RemainingRows
    left_out: tuple[Finding, ...] = ()
    more_left_out: int = Field(default=0, ge=0)
    counts: str


class SheetsRead(_Message):
    """The names of a file's sheets, of those that hold something."""

    kind: Literal["sheets"] = "sheets"
    names: tuple[str, ...]


class CodebookRead(_Message):
    """How a file of a study calls columns and values."""

    kind: Literal["codebook"] = "codebook"
    codebook: StudyLabels


class Refusal(_Message):
    """An error that an operator can mend; none of its words is a cell."""

    kind: Literal["refusal"] = "refusal"
    problem: str
    detail: str
    remedy: str

    @field_validator("problem")
    @classmethod
    def _check_problem(cls, slug: str) -> str:
        if slug not in {problem.slug for problem in Problem}:
            raise ValueError("no such problem")
        return slug

    @classmethod
    def of(cls, error: CoterieError) -> Self:
        """Return what is to be said of an error."""
        return cls(problem=error.problem.slug, detail=error.detail, remedy=error.remedy)

    def error(self) -> CoterieError:
        """Return the error, to be raised."""
        error = CoterieError.of(Problem.of_slug(self.problem), self.detail)
        error.remedy = self.remedy
        return error


class Examine(_Message):
    """Read a file to its end."""

    kind: Literal["examine"] = "examine"
    path: Path
    how: How

    def run(self, scratch: Scratch) -> ExaminedTable:
        """Return what was found; rows and ids lie in the scratch."""
        with open_source(self.path, self.how, scratch.folder) as source:
            report, table = table_examination.examine(
                source, self.how, self.path, scratch
            )
        return ExaminedTable(report=report, table=table and ReadTable.of(table))


class ReadCells(_Message):
    """Read some columns of a file as they are, and behind them those that name rows."""

    kind: Literal["cells"] = "cells"
    path: Path
    how: How
    columns: tuple[Column, ...] = ()
    naming: tuple[str, ...] = ()

    def run(self, scratch: Scratch) -> CellsRead:
        """Return the names of all columns; cells lie in the scratch."""
        with open_source(self.path, self.how, scratch.folder) as source:
            return cells_of(source, self.columns, self.naming, scratch)


class ReadSheets(_Message):
    """Read what the sheets of a file are called."""

    kind: Literal["sheets"] = "sheets"
    path: Path
    how: How = How()

    def run(self, scratch: Scratch) -> SheetsRead:
        """Return their names."""
        from party_sdk.tables.formats.sheets import sheet_names

        del scratch
        return SheetsRead(names=sheet_names(self.path, Limits.of(self.path, ())))


class ReadCodebook(_Message):
    """Read how a file of a study calls columns and values."""

    kind: Literal["codebook"] = "codebook"
    path: Path
    how: How = How()

    def run(self, scratch: Scratch) -> CodebookRead:
        """Return titles and labels."""
        del scratch
        return CodebookRead(codebook=codebook(self.path))


Job = Examine | ReadCells | ReadCodebook | ReadSheets
Answer = ExaminedTable | CellsRead | CodebookRead | SheetsRead | Refusal

_JOB: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="kind")])
_ANSWER: TypeAdapter[Answer] = TypeAdapter(
    Annotated[Answer, Field(discriminator="kind")]
)


def cells_of(
    source: Source,
    columns: Sequence[Column],
    naming: Sequence[str],
    scratch: Scratch,
) -> CellsRead:
    """Write columns of a source to a scratch, and return what else there is to say.

    Raises InvalidData if there is no such column.
    """
    source.names.require([*(column.name for column in columns), *naming])
    spool, findings = ColumnSpool(scratch.cells), Findings()
    while columns or naming:
        try:
            for batch in source.batches(columns, naming):
                cells = map(_of_one_kind, columns, batch.cells)
                spool.write([*cells, *batch.names])
            break
        except Again:
            spool.begin_again()
    spool.close()
    if columns:
        source.tell(columns, findings)
    return CellsRead(
        names=source.names.all,
        places=source.read_places() or source.places,
        left_out=tuple(findings.shown),
        more_left_out=findings.more,
        counts=source.places.word,
    )


def _of_one_kind(column: Column, cells: pa.Array) -> pa.Array:
    """Return cells whose kind is that of every other batch of their column."""
    if not column.is_numeric or is_numeric(cells.type):
        return texts(cells) if types.is_dictionary(cells.type) else cells
    values, bad = numbers(column, cells)
    if bad:
        raise InvalidData(f"{column.name!r} holds cells that are no numbers.")
    return pa.array(values, from_pandas=True)


def job_of(text: bytes) -> Job:
    """Return what is asked for."""
    return _JOB.validate_json(text)


def answer_of(text: bytes) -> Answer:
    """Return what a reader answered; :class:`ValueError` if it is none of the answers."""
    return _ANSWER.validate_json(text)
