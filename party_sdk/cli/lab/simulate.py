"""`coterie simulate`: all roles in one process, to choose a method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from party_sdk.cli.options.arguments import protocol_names
from party_sdk.cli.options.common import (
    SEED,
    LongCommand,
    column_groups_option,
    param_option,
    row_groups_option,
)
from party_sdk.cli.options.tables import reading_options
from party_sdk.cli.options.terms import (
    choose_option,
    missing_option,
    preparation_option,
)
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.results.output_files import keep_others, try_outputs, write_whole

if TYPE_CHECKING:
    from party_sdk.tables import How


@click.command(
    cls=LongCommand,
    shown="data id-column schema missing row-groups column-groups param truth labels help-all",
)
@click.argument("protocol", shell_complete=protocol_names)
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="A file: text, Excel, Parquet, SPSS, SAS or Stata.",
)
@click.option("--truth", help="A column of true classes: compared with, not clustered.")
@reading_options
@preparation_option(several=False)
@missing_option
@row_groups_option
@column_groups_option
@param_option
@choose_option
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Seed of split and session."
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="File to write the labels to (CSV, Parquet or Excel, by its ending).",
)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    help="File for a paper (JSON): terms, seeds, versions, digests, and the result.",
)
@force_option
@json_option
def simulate(
    protocol: str,
    data: Path,
    truth: str | None,
    how: How,
    preparation_files: tuple[Path, ...],
    missing: Literal["drop", "mean", "median"] | None,
    row_groups: int | None,
    column_groups: int | None,
    params: tuple[str, ...],
    choose: str | None,
    seed: int,
    labels: Path | None,
    manifest: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Play all roles of a PROTOCOL over one table, to try a method.

    Rows and columns are shuffled by the seed and divided among row groups × column
    groups. The default is three row groups, or three column groups where the protocol
    takes no others. Fidelity is the adjusted Rand index between the labels and those of
    the same clustering on the pooled table: 1 means that nothing was lost. The objective
    ratio compares with the pooled method with ten starts: 1 is as good. With several
    numbers of clusters (--param n_clusters=2..8), the quality measures of all runs are
    shown, and the run that counts. 'coterie compare' tries several methods and splits.
    """
    from party_sdk.cli.lab.case_table import simulate as play
    from party_sdk.cli.lab.cases import describe
    from party_sdk.coordinator.option_parsing import read_values
    from party_sdk.lab import usual_lattice

    try_outputs([labels, manifest], data, force=force)
    keep_others([labels, manifest], None, force=force)
    trial = play(
        protocol,
        data,
        describe(data, how, preparation_files, missing, truth),
        read_values(params),
        usual_lattice(protocol, row_groups, column_groups),
        seed,
        choose=choose,
        truth=truth,
        labels=labels,
        manifest=manifest is not None,
    )
    if manifest is not None:
        write_whole(json.dumps(trial.manifest, indent=1).encode(), manifest)
    if as_json:
        click.echo(json.dumps(trial.report))
        return
    for warning in trial.report["warnings"]:
        say(f"warning: {warning}", err=True)
    for line in trial.runs:
        say(line)
    _print(trial.report)


def _print(report: Mapping[str, Any]) -> None:
    if report["fidelity"] is not None:
        equal = "(1: equal to pooled clustering from the same start)"
        click.echo(f"fidelity  {report['fidelity']:.4f}   {equal}")
    if report["objective_ratio"] is not None:
        same = report["objective_ratio_same_rules"]
        if report["pooled_agreement"] is not None:
            beside = "(with the best of ten pooled starts)"
            click.echo(f"agreement {report['pooled_agreement']:.4f}   {beside}")
        click.echo(
            f"objective {report['objective_ratio']:.4f}   (over the best of ten pooled starts; "
            f"{same:.4f} over pooled clustering under the same rules)"
        )
    if report["site_agreement"] is not None:
        click.echo(
            f"sites     {report['site_agreement']:.4f}   (0: clusters tell nothing of the "
            "site, 1: all)"
        )
    for name in report.get("truth", {}):
        here, pooled = report["truth"][name], report["pooled_truth"][name]
        click.echo(f"{name:8}  {here:.4f}   pooled {pooled:.4f}")
    click.echo(f"rounds    {report['rounds']}")
    if report["description"] is None:
        click.echo(f"clusters  {', '.join(map(str, report['cluster_sizes']))} rows")
    if report["noise_rows"]:
        click.echo(f"noise     {report['noise_rows']} rows")
    for role, cost in report["roles"].items():
        click.echo(
            f"{role:8}  {cost['seconds']:.3f} s   {cost['sent_bytes']:,} bytes sent"
        )
