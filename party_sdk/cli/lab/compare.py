"""`coterie compare`: methods alone, on tables of your own, beside each other."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from party_sdk.cli.options.arguments import protocol_names
from party_sdk.cli.options.common import SEED, LongCommand
from party_sdk.cli.options.tables import reading_options
from party_sdk.cli.options.terms import (
    choose_option,
    missing_option,
    preparation_option,
)
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.coordinator.option_parsing import read_values

if TYPE_CHECKING:
    from party_sdk.cli.lab.cases import Case, CaseFailure, CaseResult, LeftOut, Wish
    from party_sdk.tables import How

_WITHOUT_RESULT = 4
_LATTICE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


def _read_lattices(
    ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[int, int]]:
    """Return row and column groups of ROWSxCOLUMNS texts, each once."""
    found = []
    for text in dict.fromkeys(texts):
        sizes = _LATTICE.fullmatch(text)
        if sizes is None:
            raise click.BadParameter(f"{text!r} is not ROWSxCOLUMNS.", ctx, option)
        found.append((int(sizes[1]), int(sizes[2])))
    return found


@click.command(
    cls=LongCommand,
    shown="protocol layout n-clusters id-column schema missing truth json help-all",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    shell_complete=protocol_names,
    help="Name of a protocol; again for several. By default all that people are advised "
    "to use.",
)
@click.option(
    "--layout",
    "lattices",
    multiple=True,
    metavar="ROWSxCOLUMNS",
    callback=_read_lattices,
    help="Row groups and column groups, e.g. 3x1; again for several. By default 3x1, "
    "and where columns suffice for two at each party 1x3 (or 1x2) and 2x2.",
)
@click.option(
    "--n-clusters",
    default="2..8",
    show_default=True,
    help="Numbers of clusters: one, a range, or a list such as [2,4,8].",
)
@choose_option
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="[PROTOCOL.]NAME=VALUE",
    help="A parameter, its value as JSON, of all protocols or of one; may be given "
    "several times.",
)
@click.option("--truth", help="A column of true classes: compared with, not clustered.")
@reading_options
@preparation_option(several=False)
@missing_option
@click.option(
    "--row-limit",
    type=click.IntRange(min=2),
    default=5000,
    show_default=True,
    help="Of a table with more rows so many are tried, drawn by the seed.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of the draw of rows, of split and session.",
)
@json_option
@click.pass_context
def compare(
    context: click.Context,
    /,
    files: tuple[Path, ...],
    how: How,
    preparation_files: tuple[Path, ...],
    missing: Literal["drop", "mean", "median"] | None,
    truth: str | None,
    row_limit: int,
    *,
    as_json: bool,
    **wish: Any,
) -> None:
    """Try methods, splits and numbers of clusters on FILES.

    Nothing is sent from this machine. Each case is one session with all roles in this
    process, as 'coterie simulate' plays it: a protocol, a layout, all numbers of
    clusters. What
    does not fit is named with its reason. Fidelity is that of the run that counts,
    against the same clustering on the pooled table: 1 means that nothing was lost.
    Beneath stands what k-means gives without a session: on pooled rows, to each party
    alone, and by averaging what parties find.
    """
    from party_sdk.cli.lab import baselines
    from party_sdk.cli.lab.cases import CaseFailure, describe, plan, read, run

    seed = wish["seed"]
    tables = {
        str(file): read(
            file,
            describe(file, how, preparation_files, missing, truth),
            truth,
            row_limit=row_limit,
            seed=seed,
        )
        for file in files
    }
    if not as_json:
        _show_tables(tables)
    cases, others = plan(tables, _wish(**wish))
    if not as_json:
        many = "case" if len(cases) == 1 else "cases"
        say(f"{len(cases)} {many}, {_numbers(cases)} clusters", err=True)
    with _show_progress(cases, as_json=as_json) as followed:
        results = [run(case, seed) for case in followed]
    beside = list(baselines.baselines(results, seed))
    if as_json:
        told = {"baselines": baselines.documents(beside)}
        click.echo(json.dumps(_document(tables, results, others) | told))
    else:
        _print(results, others)
        for line in baselines.lines(beside):
            say(line)
    if all(isinstance(result, CaseFailure) for result in results):
        context.exit(_WITHOUT_RESULT)


def _wish(
    protocols: tuple[str, ...],
    lattices: list[tuple[int, int]],
    n_clusters: str,
    choose: str | None,
    params: tuple[str, ...],
    seed: int,
) -> Wish:
    from clustering_protocols.common.errors import InvalidParameters
    from party_sdk.cli.lab.cases import Wish
    from party_sdk.coordinator.option_parsing import read_runs

    numbers = read_values((f"n_clusters={n_clusters}",))
    single, several = read_runs(numbers, choose)
    if several is None and type(single["n_clusters"]) is not int:
        raise InvalidParameters(
            f"{n_clusters!r} is no number, no range such as 2..8 and no list.",
            field="n_clusters",
        )
    return Wish(
        protocols=protocols,
        lattices=lattices,
        n_clusters=numbers["n_clusters"],
        choose=choose,
        params=params,
        seed=seed,
    )


# While it runs


def _show_tables(tables: Any) -> None:
    for name, table in tables.items():
        n_rows, whole = len(table.X), table.source.n_rows
        rows = f"{n_rows} rows"
        if n_rows < whole:
            rows = f"{n_rows} of {whole} rows, drawn by the seed (--row-limit)"
        say(f"{name}: {rows}; {len(table.columns)} columns", err=True)
        for warning in table.source.report.warnings:
            say(f"warning: {warning}", err=True)


def _numbers(cases: list[Case]) -> str:
    """Return the numbers of clusters of all cases in words."""
    known = sorted({k for case in cases for k in case.numbers if k is not None})
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]} to {known[-1]}"
    return ", ".join(map(str, known)) or "any number of"


@contextmanager
def _show_progress(cases: list[Case], *, as_json: bool) -> Iterator[Iterable[Case]]:
    """Give the cases one by one: a bar in a terminal, else a line of each."""
    if as_json:
        yield cases
    elif not _in_terminal():
        yield _announce_cases(cases)
    else:
        with click.progressbar(
            cases, item_show_func=_name, show_pos=True, file=sys.stderr
        ) as bar:
            yield bar


def _in_terminal() -> bool:
    return sys.stderr.isatty()


def _announce_cases(cases: list[Case]) -> Iterator[Case]:
    for number, case in enumerate(cases, start=1):
        say(f"{number}/{len(cases)}  {_name(case)}", err=True)
        yield case


def _name(case: Case | None) -> str:
    return "" if case is None else f"{case.file} {case.protocol} {case.layout}"


# What came of it


def _document(
    tables: Any, results: list[CaseResult | CaseFailure], others: list[LeftOut]
) -> dict[str, Any]:
    from dataclasses import asdict

    from party_sdk.cli.lab.cases import documents

    return {
        "tables": {
            name: {
                "rows": table.source.n_rows,
                "tried_rows": len(table.X),
                "columns": list(table.columns),
                "warnings": list(table.source.report.warnings),
            }
            for name, table in tables.items()
        },
        "cases": list(documents(results)),
        "left_out": [asdict(each) for each in others],
    }


def _print(results: list[CaseResult | CaseFailure], others: list[LeftOut]) -> None:
    from party_sdk.cli.lab.case_table import lines, notes

    for line in lines(results):
        say(line)
    click.echo()
    for line in notes(results, others):
        say(line)
