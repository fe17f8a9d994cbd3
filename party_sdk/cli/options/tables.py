"""Options of commands that read a table or write files, gathered into one argument each."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.admission.table_files import TableSpec
from party_sdk.cli.terminal.output import say
from party_sdk.results.output_files import try_outputs

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from party_sdk.tables import How
    from party_sdk.tables.mapping import TableMapping

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
    help="Names the rows; it is never sent. Again for a name of several columns.",
)


def _read_mapping(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> TableMapping | None:
    """Return the mapping in a file, once a command that takes it runs."""
    del parameter
    if value is None or context.resilient_parsing:
        return None
    from party_sdk.tables.mapping import read_mapping

    return read_mapping(value)


mapping_option = click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    callback=_read_mapping,
    help="A file that says how the table becomes what the dictionary describes: names, "
    "levels, units.",
)


def reading_options(command: Command) -> Command:
    """Add the options that say how a table is read; the command takes ``how``."""
    return mapping_option(unmapped_reading_options(command))


def unmapped_reading_options(command: Command) -> Command:
    """Add the same without a mapping."""

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
    @click.option(
        "--allow",
        multiple=True,
        metavar="GUARD",
        help="Switch a guard off: running-number, large-integers, totals-row, "
        "cell-lines or large-file.",
    )
    @functools.wraps(command)
    def run_with_reading(
        *args: Any,
        columns: str | None,
        dialect: tuple[str, ...],
        schema_file: Path | None,
        allow: tuple[str, ...],
        id_columns: tuple[str, ...],
        mapping: TableMapping | None = None,
        **rest: Any,
    ) -> Any:
        if "path" in rest and rest["path"] is None:  # no table is named: none is read
            return command(*args, how=None, **rest)
        from party_sdk.tables import Dialect, How
        from party_sdk.tables.variables import read_schema

        how = How(
            id_column=id_columns,
            columns=[n.strip() for n in columns.split(",")] if columns else None,
            dialect=Dialect.parse(dialect),
            schema=None if schema_file is None else read_schema(schema_file),
            mapping=mapping,
            allow=allow,
        )
        return command(*args, how=how, **rest)

    return id_option(run_with_reading)


def _name_ids() -> Callable[[Sequence[str], str | None], str | None]:
    """Return what says, or asks at a terminal, which column names the rows: once."""
    answers: list[str | None] = []

    def answer(columns: Sequence[str], found: str | None) -> str | None:
        if not answers:
            if found is None and columns and sys.stdin.isatty():
                shown = ", ".join(map(repr, columns))
                say(f"No id column is named (--id-column). Columns: {shown}", err=True)
                found = click.prompt(
                    "Which one names the rows? none: their numbers do",
                    default="none",
                    type=click.Choice(["none", *columns]),
                    show_choices=False,
                    err=True,
                )
            answers.append(None if found == "none" else found)
        return answers[0]

    return answer


def _say_rows(table: TableSpec, data: DataSource) -> None:
    """Say how many rows a table has, what names them, and what to look at."""
    from party_sdk.tables import Table

    named = f"named by {(table.long_form or '').partition(',')[0]!r}"
    warnings: tuple[str, ...] = ()
    if isinstance(data, Table):
        names, warnings = ", ".join(map(repr, data.naming)), data.report.warnings
        named = f"named by {names}" if names else "not named"
        if table.how.mapping is not None:
            say("read by a mapping of this table", err=True)
    shown = [*data.columns[:20], *(["…"] if len(data.columns) > 20 else [])]
    say(f"{data.n_rows} rows, {named}; columns {', '.join(shown)}", err=True)
    for warning in warnings:
        say(f"warning: {warning}", err=True)


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
        help="This party's rows: a file of text, Excel, Parquet, SPSS, SAS or Stata.",
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
    def run_with_table(
        *args: Any,
        path: str | None,
        how: How,
        long_form: str | None,
        objects_file: Path | None,
        **rest: Any,
    ) -> Any:
        if path is None:
            return command(*args, rows=None, **rest)
        outputs = [rest.get(name) for name in ("labels", "picture")]
        try_outputs(outputs, Path(path), force=rest.get("force", False))
        rows = TableSpec(
            path=path,
            how=how,
            long_form=long_form,
            objects_file=objects_file,
            on_open=_say_rows,
            name_ids=_name_ids(),
        )
        return command(*args, rows=rows, **rest)

    return run_with_table
