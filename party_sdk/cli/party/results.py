"""`coterie party report` and `party predict`: what came of a session, at home."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from party_sdk.cli.options import (
    OUT,
    Choices,
    Force,
    HomeOptions,
    Invited,
    Joined,
    Labels,
    MaybeSlot,
    NewMapping,
    Slot,
    TableOptions,
)
from party_sdk.cli.parameters import command, option
from party_sdk.cli.terminal.output import Output, align_columns
from party_sdk.cli.terminal.result_lines import (
    label_lines,
    profile_lines,
    report_summary,
    write_page,
)
from party_sdk.results.output_files import (
    keep_others,
    remember_outputs,
    try_outputs,
    write_whole,
)

if TYPE_CHECKING:
    from coterie_pages.models import NewRowsSummary, OwnRun, RunOverlap, VariableDrift
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home
    from party_sdk.party.party_session import PartySession

_MOST_VARIABLES: Final = 12


def _read_names(
    _: click.Context, __: click.Parameter, texts: Sequence[str]
) -> dict[int, str]:
    """Return the names in NUMBER=NAME texts."""
    found = {}
    for text in texts:
        number, equals, called = text.partition("=")
        if not equals or not number.strip().isdigit():
            raise click.BadParameter(
                f"{text!r} is not NUMBER=NAME, such as 3=SIDD.", param_hint="--name"
            )
        found[int(number)] = called.strip()
    return found


@command()
def report(
    session: Invited,
    slot: MaybeSlot = None,
    *,
    table: TableOptions,
    out: Annotated[
        tuple[Path, ...],
        option(
            "Write a file, by its ending. .html: the report as a page to read and print. "
            ".json: terms, public seed, digests and versions, for a paper. With --data "
            "your table with the cluster of each row: .csv, .xlsx, .parquet, .sav (SPSS) "
            "or .dta (Stata). Again for several.",
            type=OUT,
        ),
    ] = (),
    runs: Annotated[
        bool,
        option(
            "Instead, before a number of clusters is chosen: your own rows under each. "
            "Takes --data."
        ),
    ] = False,
    named: Annotated[
        Mapping[int, str],
        option(
            "What you call a cluster in reports and files: 3=SIDD; 3= takes it back.",
            "--name",
            multiple=True,
            default=(),
            metavar="NUMBER=NAME",
            callback=_read_names,
        ),
    ],
    names: Annotated[
        Path | None,
        option(
            'JSON file of all names, {"3": "SIDD"}: read if it is there, else written.',
            type=OUT,
        ),
    ] = None,
    force: Force = False,
    new_mapping: NewMapping = False,
    home: HomeOptions,
) -> Output:
    """Report your run of a session, from what is kept on this disk. Nothing is sent.

    SESSION is its id, or your invitation; SLOT is needed where you sat at several. With
    --data your rows are drawn on two axes. Afterwards 'party forget' keeps the report.
    Methods whose analyst labels the rows (dc, omnifc, pqmds) have no --runs.
    """
    rows, here = table.spec(force=force), home.open(new_mapping=new_mapping)
    folder = here.one_of(session, slot)
    if runs:
        return _show_runs(here, folder, rows)
    if rows is None and any(_is_table(path) for path in out):
        raise click.UsageError("A table with clusters takes your own: --data.")
    keep_others(out, folder, force=force)
    try_outputs(out, here.path if rows is None else Path(rows.path), force=True)
    if named or names is not None:
        _name_clusters(here, folder, named, names)
    for path in out:
        with remember_outputs([path], folder):
            _write(path, here, folder, rows)
    made = here.report(folder, rows)
    ended = f"{made.ended}, without a result" if made.ended else "no result yet"
    summary = report_summary(made, "complete" if made.complete else ended)
    log = f"{len(made.left)} lines in the log of what was sent"
    written = [f"{path} is written" for path in out]
    return Output(made, chain(summary, [log], written))


def _is_table(path: Path) -> bool:
    return path.suffix.lower() not in {".html", ".htm", ".json"}


def _write(
    path: Path, here: "Home", folder: "PartySession", rows: "TableSpec | None"
) -> None:
    if path.suffix.lower() == ".json":
        write_whole(json.dumps(here.manifest(folder), indent=1).encode(), path)
    elif rows is not None and _is_table(path):
        from party_sdk.application.exports import export_table
        from party_sdk.results.exports import write_export

        write_export(path, export_table(here, folder, rows))
    else:
        write_page(here.report(folder, rows), path)


def _name_clusters(
    here: "Home", folder: "PartySession", named: Mapping[int, str], file: Path | None
) -> None:
    from party_sdk.application.exports import name_clusters, read_names

    given = read_names(file) if file is not None and file.exists() else {}
    names = name_clusters(here, folder, {**given, **named})
    if file is not None and not file.exists():
        write_whole(json.dumps(dict(enumerate(names))).encode(), file)


# Each number of clusters over the own rows, before the choice


def _show_runs(
    here: "Home", folder: "PartySession", rows: "TableSpec | None"
) -> Output:
    from party_sdk.application.exports import look_at_runs

    if rows is None:
        raise click.UsageError("--runs takes your table: --data.")
    found, overlaps = look_at_runs(here, folder, rows)
    document = {
        "runs": [run.model_dump(mode="json", exclude={"sizes"}) for run in found],
        "overlaps": [each.model_dump(mode="json") for each in overlaps],
    }
    lines = chain.from_iterable(map(_run_lines, found))
    return Output(document, chain(lines, *map(_overlap_lines, overlaps)))


def _run_lines(run: "OwnRun") -> Iterator[str]:
    yield f"{run.n_clusters} clusters; your rows: {', '.join(map(str, run.own_sizes))}"
    for line in () if run.profile is None else profile_lines([run.profile]):
        yield f"  {line}"


def _overlap_lines(overlap: "RunOverlap") -> Iterator[str]:
    yield f"your rows, from {overlap.first} to {overlap.second} clusters:"
    heads = ["", *(f"cluster {k}" for k in range(overlap.second))]
    rows = [
        [f"cluster {number}", *map(str, counts)]
        for number, counts in enumerate(overlap.counts)
    ]
    yield from (f"  {line}" for line in align_columns([heads, *rows]))


# New rows


@command()
def predict(
    session: Joined,
    slot: Slot,
    *,
    table: TableOptions,
    labels: Labels = Path("labels.csv"),
    force: Force = False,
    choices: Choices,
    new_mapping: NewMapping = False,
    home: HomeOptions,
) -> Output:
    """Label new rows at home, where the terms release what that takes.

    Each row gets its label, the distance to the centre of its cluster, how unsure the
    label is, and the share of its columns outside the trained range. Prints how far the
    rows lie from the session's. Nothing is sent. You are asked first where they look like
    other units.
    """
    from party_sdk.cli.terminal.asker import confirm_units

    rows = table.require([labels], force=force)
    here = home.open(new_mapping=new_mapping)
    keep_others([labels], None, force=force)
    found = here.label(session, slot, rows, choices=choices, agree=confirm_units)
    path, summary = found.save(labels), found.summary
    said = {} if summary is None else summary.model_dump(mode="json")
    lines = () if summary is None else summary_lines(summary)
    document = {"labels": str(path), **said}
    return Output(document, chain(label_lines(path, len(found.labels)), lines))


def summary_lines(summary: "NewRowsSummary") -> Iterator[str]:
    """Yield what is said of new rows as a whole."""
    from coterie_pages.formatting import percent

    if left := summary.n_rows - summary.n_labelled:
        yield f"without a label, for want of a value: {left} rows"
    usual = f"the same distribution has at most {percent(summary.by_chance)} on average"
    yield f"outside the range of your trained rows: {percent(summary.outside)} ({usual})"
    shares = [
        [
            f"cluster {each.cluster}",
            f"{each.n_rows}",
            percent(each.then),
            percent(each.now),
        ]
        for each in summary.clusters
    ]
    yield from align_columns([["", "new rows", "share then", "now"], *shares])
    shown = summary.variables[:_MOST_VARIABLES]
    heads = ["", "mean then", "now", "shift", "outside", "missing then", "now"]
    rows = [heads, *map(_variable, shown)]
    if all(each.missing_now is None for each in shown):
        rows = [row[:-2] for row in rows]
    yield from align_columns(rows)
    if left := len(summary.variables) - len(shown) + summary.more_variables:
        yield f"and {left} columns that moved less"


def _variable(each: "VariableDrift") -> list[str]:
    from coterie_pages.formatting import drift_value, percent

    return [
        each.name,
        drift_value(each, each.then),
        drift_value(each, each.now),
        "–" if each.shift is None else f"{each.shift:+.2f}",
        *map(percent, (each.outside, each.missing_then, each.missing_now)),
    ]
