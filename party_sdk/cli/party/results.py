"""`coterie party report` and `party predict`: use the result of a session at home."""

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
    InvitationArgument,
    Labels,
    MaybeSlot,
    NewMapping,
    SessionName,
    Slot,
    TableOptions,
)
from party_sdk.cli.parameters import command, option
from party_sdk.cli.terminal.output import Output, align_columns
from party_sdk.cli.terminal.result_lines import (
    label_lines,
    profile_lines,
    report_summary_lines,
    write_page,
)
from party_sdk.results.output_files import (
    check_outputs,
    record_outputs,
    refuse_overwriting,
    write_atomically,
)

if TYPE_CHECKING:
    from coterie_pages.models import NewRowsSummary, OwnRun
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home
    from party_sdk.party.party_session import PartySession

_MAX_VARIABLES: Final = 12


def _parse_cluster_names(
    _: click.Context, __: click.Parameter, texts: Sequence[str]
) -> dict[int, str]:
    names = {}
    for text in texts:
        number, equals, name = text.partition("=")
        if not equals or not number.strip().isdigit():
            raise click.BadParameter(
                f"{text!r} is not NUMBER=NAME, such as 3=SIDD.", param_hint="--name"
            )
        names[int(number)] = name.strip()
    return names


@command()
def report(
    session: InvitationArgument,
    slot: MaybeSlot = None,
    *,
    table: TableOptions,
    out: Annotated[
        tuple[Path, ...],
        option(
            "Write a file, by its extension. .html: the report as a page to read and "
            "print. .json: terms, public seed, digests and versions, for a paper. With "
            "--data your table with the cluster of each row: .csv, .xlsx, .parquet, "
            ".sav (SPSS) or .dta (Stata). May be repeated.",
            type=OUT,
        ),
    ] = (),
    runs: Annotated[
        bool,
        option(
            "Instead, before a number of clusters is chosen, show your own rows under "
            "each number. Needs --data."
        ),
    ] = False,
    new_names: Annotated[
        Mapping[int, str],
        option(
            "Your name for a cluster in reports and files: 3=SIDD; 3= removes it.",
            "--name",
            multiple=True,
            default=(),
            metavar="NUMBER=NAME",
            callback=_parse_cluster_names,
        ),
    ],
    names: Annotated[
        Path | None,
        option(
            'JSON file of all names, {"3": "SIDD"}: read if it exists, otherwise written.',
            type=OUT,
        ),
    ] = None,
    force: Force = False,
    new_mapping: NewMapping = False,
    home: HomeOptions,
) -> Output:
    """Report your part in a session, from data on this disk. Nothing is sent.

    SESSION is its id, or your invitation; SLOT is needed if this home has several. With
    --data your rows are plotted on two axes. 'party forget' keeps the report. Methods
    in which the analyst labels the rows (dc, omnifc, pqmds) do not support --runs.
    """
    rows, own_home = table.build_spec(force=force), home.open(new_mapping=new_mapping)
    stored = own_home.find_named(session, slot)
    if runs:
        return _show_runs(own_home, stored, rows)
    if rows is None and any(_is_table_file(path) for path in out):
        raise click.UsageError("A table with clusters needs your own table: --data.")
    refuse_overwriting(out, stored, force=force)
    check_outputs(out, own_home.path if rows is None else Path(rows.path), force=True)
    if new_names or names is not None:
        from party_sdk.application.exports import name_clusters, read_names

        is_written = names is not None and not names.exists()
        file_names = {} if names is None or is_written else read_names(names)
        all_names = name_clusters(own_home, stored, {**file_names, **new_names})
        if names is not None and is_written:
            write_atomically(json.dumps(dict(enumerate(all_names))).encode(), names)
    for path in out:
        with record_outputs([path], stored):
            _write_output(path, own_home, stored, rows)
    run_report = own_home.report(stored, rows)
    result_state = (
        f"{run_report.ended}, without a result" if run_report.ended else "no result yet"
    )
    summary = report_summary_lines(
        run_report, "complete" if run_report.complete else result_state
    )
    log = f"{len(run_report.left)} lines in the log of what was sent"
    file_lines = [f"{path} is written" for path in out]
    return Output(run_report, chain(summary, [log], file_lines))


def _is_table_file(path: Path) -> bool:
    return path.suffix.lower() not in {".html", ".htm", ".json"}


def _write_output(
    path: Path, home: "Home", stored: "PartySession", rows: "TableSpec | None"
) -> None:
    if path.suffix.lower() == ".json":
        write_atomically(json.dumps(home.manifest(stored), indent=1).encode(), path)
    elif rows is not None and _is_table_file(path):
        from party_sdk.application.exports import export_table
        from party_sdk.results.exports import write_export

        write_export(path, export_table(home, stored, rows))
    else:
        write_page(home.report(stored, rows), path)


# A party's rows under each number of clusters, before one is chosen


def _show_runs(
    home: "Home", stored: "PartySession", rows: "TableSpec | None"
) -> Output:
    from party_sdk.application.exports import preview_runs

    if rows is None:
        raise click.UsageError("--runs needs your table: --data.")
    runs = preview_runs(home, stored, rows)
    document = {
        "runs": [run.model_dump(mode="json", exclude={"sizes"}) for run in runs],
    }
    return Output(document, chain.from_iterable(map(_run_lines, runs)))


def _run_lines(run: "OwnRun") -> Iterator[str]:
    yield f"{run.n_clusters} clusters; your rows: {', '.join(map(str, run.own_sizes))}"
    for line in () if run.profile is None else profile_lines([run.profile]):
        yield f"  {line}"


# New rows


@command()
def predict(
    session: SessionName,
    slot: Slot,
    *,
    table: TableOptions,
    labels: Labels = Path("labels.csv"),
    force: Force = False,
    choices: Choices,
    new_mapping: NewMapping = False,
    home: HomeOptions,
) -> Output:
    """Label new rows on this machine, if the terms release a model.

    Each row gets its label, the distance to the centre of its cluster, the label's
    uncertainty, and the proportion of its columns outside the range of the trained
    rows. The command prints how much the new rows differ from those of the session.
    Nothing is sent. If the rows seem to be in other units, you are asked first.
    """
    from party_sdk.cli.terminal.asker import confirm_units

    rows = table.require_spec([labels], force=force)
    own_home = home.open(new_mapping=new_mapping)
    refuse_overwriting([labels], None, force=force)
    new_rows = own_home.label(session, slot, rows, choices=choices, agree=confirm_units)
    path, summary = new_rows.save(labels), new_rows.summary
    figures = {} if summary is None else summary.model_dump(mode="json")
    lines = () if summary is None else new_rows_lines(summary)
    document = {"labels": str(path), **figures}
    return Output(document, chain(label_lines(path, len(new_rows.labels)), lines))


def new_rows_lines(summary: "NewRowsSummary") -> Iterator[str]:
    """Yield a summary of new rows: how many got labels, and how much they differ."""
    from coterie_pages.formatting import drift_cells, format_percent

    if n_left := summary.n_rows - summary.n_labelled:
        yield f"without a label, because a value is missing: {n_left} rows"
    expected = f"by chance at most {format_percent(summary.by_chance)} on average"
    yield f"outside the range of your trained rows: {format_percent(summary.outside)} ({expected})"
    shares = [
        [
            f"cluster {share.cluster}",
            f"{share.n_rows}",
            format_percent(share.then),
            format_percent(share.now),
        ]
        for share in summary.clusters
    ]
    yield from align_columns([["", "new rows", "in the session", "now"], *shares])
    variables = summary.variables[:_MAX_VARIABLES]
    yield from align_columns([["", "shift", "outside"], *map(drift_cells, variables)])
    if n_left := len(summary.variables) - len(variables) + summary.more_variables:
        yield f"and {n_left} columns that differ less"
