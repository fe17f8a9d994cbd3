"""Options of commands that read a table or write files, gathered into one argument each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.output import say
from party_sdk.named_tables import NamedTable
from party_sdk.outputs import try_outputs

if TYPE_CHECKING:
    from clustering_protocols.data import DataSource
    from party_sdk.arriving import Agreed
    from party_sdk.tables import How

Command = Callable[..., Any]

csv_option = click.option(
    "--csv",
    "dialect",
    multiple=True,
    metavar="NAME=VALUE",
    help="How a text file is written, instead of finding it out: delimiter=; decimal=, "
    "encoding=cp1252 skip=1 dates=day-first missing=-9 sheet=…; again for several.",
)
id_option = click.option(
    "--id-column",
    "id_columns",
    multiple=True,
    help="Names the rows; it never leaves. Again for a name of several columns.",
)


def reading_options(command: Command) -> Command:
    """Add the options that say how a table is read; the command takes ``how``."""

    @click.option(
        "--columns",
        help="Columns to cluster, comma-separated; by default all but the id columns.",
    )
    @csv_option
    @click.option(
        "--schema",
        "schema_file",
        type=click.Path(path_type=Path),
        help="A data dictionary (Table Schema): what columns mean.",
    )
    @click.option("--query", help="With a postgresql:// address: the rows to take.")
    @click.option(
        "--allow",
        multiple=True,
        metavar="GUARD",
        help="Switch a guard off: running-number, large-integers or totals-row.",
    )
    @functools.wraps(command)
    def gathered(
        *args: Any,
        columns: str | None,
        dialect: tuple[str, ...],
        schema_file: Path | None,
        query: str | None,
        allow: tuple[str, ...],
        id_columns: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        from party_sdk.tables import Dialect, How
        from party_sdk.tables.dictionaries import read_schema

        how = How(
            id_column=id_columns,
            columns=[n.strip() for n in columns.split(",")] if columns else None,
            dialect=Dialect.parse(dialect),
            schema=None if schema_file is None else read_schema(schema_file),
            query=query,
            allow=allow,
        )
        return command(*args, how=how, **rest)

    return id_option(gathered)


class GivenTable(NamedTable):
    """A table as the command line names it, which says what its rows are."""

    def open(
        self, agreed: Agreed | None = None, columns: Sequence[str] | None = None
    ) -> DataSource:
        """Return its rows, and say what they are; see :class:`NamedTable`."""
        from party_sdk.tables import Table

        data = NamedTable.open(self, agreed, columns)
        if not isinstance(data, Table):
            _show(data, f"named by {(self.long_form or '').partition(',')[0]!r}")
            return data
        names = ", ".join(map(repr, data.naming))
        _show(data, f"named by {names}" if names else "not named")
        for warning in data.report.warnings:
            say(f"warning: {warning}", err=True)
        return data


def data_options(command: Command) -> Command:
    """Add the options that name rows; the command takes ``rows``, a table."""
    return _data_options(command, required=True)


def own_rows_options(command: Command) -> Command:
    """Add the same where rows may be left out; ``rows`` is None then."""
    return _data_options(command, required=False)


def _data_options(command: Command, *, required: bool) -> Command:
    @click.option(
        "--data",
        "path",
        required=required,
        help="This party's rows: a file (text, Excel, Parquet, JSON, SPSS, SAS, Stata), "
        "or postgresql://… with --query.",
    )
    @reading_options
    @click.option(
        "--long",
        "long_form",
        metavar="OBJECT,ITEM[,COUNT]",
        help="The file has one line per object and item: the names of these columns.",
    )
    @click.option(
        "--objects",
        "objects_file",
        type=click.Path(path_type=Path),
        help="With --long: text file with the ids of all objects, one a line, the same "
        "at every site.",
    )
    @functools.wraps(command)
    def gathered(
        *args: Any,
        path: str | None,
        how: How,
        long_form: str | None,
        objects_file: Path | None,
        **rest: Any,
    ) -> Any:
        if path is None:
            return command(*args, rows=None, **rest)
        outputs = [rest.get(name) for name in ("labels", "picture", "html")]
        try_outputs(outputs, Path(path), force=rest.get("force", False))
        rows = GivenTable(
            path=path, how=how, long_form=long_form, objects_file=objects_file
        )
        return command(*args, rows=rows, **rest)

    return gathered


def _show(data: DataSource, named: str) -> None:
    shown = [*data.columns[:20], *(["…"] if len(data.columns) > 20 else [])]
    say(f"{data.n_rows} rows, {named}; columns {', '.join(shown)}", err=True)
