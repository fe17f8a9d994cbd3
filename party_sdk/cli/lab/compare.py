"""`coterie compare`: compare methods on your own tables."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.cli.lab.simulate import Truth
from party_sdk.cli.options import SEED, Choose, Missing, Preparations, ReadingOptions
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import Output, say
from party_sdk.coordinator.option_parsing import parse_runs, parse_values

if TYPE_CHECKING:
    from party_sdk.cli.lab.cases import Case

_WITHOUT_RESULT = 4
_LATTICE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


def _parse_lattices(
    ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[int, int]]:
    lattices = []
    for text in dict.fromkeys(texts):
        sizes = _LATTICE.fullmatch(text)
        if sizes is None:
            raise click.BadParameter(f"{text!r} is not ROWSxCOLUMNS.", ctx, option)
        lattices.append((int(sizes[1]), int(sizes[2])))
    return lattices


@command(
    common="protocol layout n-clusters id-column schema missing truth json help-all"
)
def compare(
    files: Annotated[tuple[Path, ...], argument()],
    *,
    protocols: Annotated[
        tuple[str, ...],
        option(
            "Name of a protocol; may be repeated. By default all that 'coterie "
            "protocols' lists.",
            "--protocol",
        ),
    ] = (),
    lattices: Annotated[
        Sequence[tuple[int, int]],
        option(
            "Row groups and column groups, e.g. 3x1; may be repeated. By default 3x1, "
            "and if each party gets two columns or more also 1x3 (or 1x2) and 2x2.",
            "--layout",
            multiple=True,
            metavar="ROWSxCOLUMNS",
            callback=_parse_lattices,
        ),
    ] = (),
    n_clusters: Annotated[
        str, option("Numbers of clusters: one, a range, or a list such as [2,4,8].")
    ] = "2..8",
    choose: Choose = None,
    params: Annotated[
        tuple[str, ...],
        option(
            "A parameter of all protocols or of one, its value as JSON; may be "
            "repeated.",
            "--param",
            metavar="[PROTOCOL.]NAME=VALUE",
        ),
    ] = (),
    truth: Truth = None,
    reading: ReadingOptions,
    preparations: Preparations = (),
    missing: Missing = None,
    row_limit: Annotated[
        int,
        option("Use at most this many rows of a table, drawn with the seed.", low=2),
    ] = 5000,
    seed: Annotated[
        int, option("Seed of the sample of rows, the split and the session.", type=SEED)
    ] = 0,
    as_json: bool,
) -> Output:
    """Try methods, splits and numbers of clusters on FILES.

    Nothing is sent from this machine. Each case is a session of one protocol and one
    layout with all numbers of clusters. It is simulated in this process, as 'coterie
    simulate' does. Protocols that cannot be used for a table or layout are listed with
    the reason. Fidelity compares the selected run with the same clustering of the
    pooled table: 1 means that nothing was lost. The results of k-means without a
    session follow: on the pooled rows, and for each party alone.
    """
    from party_sdk.cli.lab import baselines
    from party_sdk.cli.lab.case_table import case_lines, case_notes
    from party_sdk.cli.lab.cases import add_dictionary, plan_cases, read_trial_table

    options, tables = reading.read_options(), {}
    for file in files:
        described = add_dictionary(file, options, preparations, missing, truth)
        table = read_trial_table(file, described, truth, row_limit=row_limit, seed=seed)
        tables[str(file)] = table
        if not as_json:
            n_rows, whole = len(table.X), table.source.n_rows
            rows = f"{n_rows} rows"
            if n_rows < whole:
                rows = f"{n_rows} of {whole} rows, drawn with the seed (--row-limit)"
            say(f"{file}: {rows}; {len(table.columns)} columns", err=True)
            for warning in table.source.report.warning_sentences:
                say(f"warning: {warning}", err=True)
    numbers = parse_values((f"n_clusters={n_clusters}",))
    single, several = parse_runs(numbers, choose)
    if several is None and type(single["n_clusters"]) is not int:
        raise InvalidParameters(
            f"{n_clusters!r} is not a number, a range such as 2..8 or a list.",
            field="n_clusters",
        )
    k = numbers["n_clusters"]
    cases, omissions = plan_cases(
        tables, protocols, lattices, k, params, choose=choose, seed=seed
    )
    announced = cases if as_json else _announce_cases(cases)
    results = [case.run(seed) for case in announced]
    references = baselines.compute_baselines(cases, results, seed)
    document = {
        "tables": {
            name: {
                "rows": table.source.n_rows,
                "tried_rows": len(table.X),
                "columns": list(table.columns),
                "warnings": list(table.source.report.warnings),
            }
            for name, table in tables.items()
        },
        "cases": results,
        "left_out": omissions,
        "baselines": references,
    }
    lines_shown = [
        *case_lines(results),
        "",
        *case_notes(results, omissions),
        *baselines.baseline_lines(references),
    ]
    failed = all("error" in case for case in results)
    return Output(document, lines_shown, _WITHOUT_RESULT if failed else 0)


def _announce_cases(cases: list["Case"]) -> Iterator["Case"]:
    """Yield the cases, and print each before it is simulated."""
    counts = sorted({k for case in cases for k in case.cluster_counts if k is not None})
    numbers = ", ".join(map(str, counts)) or "any number of"
    if len(counts) > 2 and counts == list(range(counts[0], counts[-1] + 1)):
        numbers = f"{counts[0]} to {counts[-1]}"
    noun = "case" if len(cases) == 1 else "cases"
    say(f"{len(cases)} {noun}, {numbers} clusters", err=True)
    for number, case in enumerate(cases, start=1):
        say(f"{number}/{len(cases)}  {case.name}", err=True)
        yield case
