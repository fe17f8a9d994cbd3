"""`coterie simulate`: all roles in one process, to choose a method."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv

from clustering_protocols import metrics, simulation
from clustering_protocols.data import matrix
from clustering_protocols.terms import Layout
from party_sdk.cli.options import (
    SEED,
    column_groups_option,
    param_option,
    read_params,
    row_groups_option,
)
from party_sdk.cli.output import json_option
from party_sdk.frames import column_names, open_table, read_column


@click.command()
@click.argument("protocol")
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="CSV or Parquet file.",
)
@click.option("--truth", help="A column of true classes: compared with, not clustered.")
@click.option(
    "--id-column", "id_columns", multiple=True, help="A column that is not clustered."
)
@row_groups_option(default=2)
@column_groups_option
@param_option
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Seed of split and session."
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="CSV file to write the labels to, in the order of the rows.",
)
@json_option
def simulate(
    protocol: str,
    data: Path,
    truth: str | None,
    id_columns: tuple[str, ...],
    row_groups: int,
    column_groups: int,
    params: tuple[str, ...],
    seed: int,
    labels: Path | None,
    *,
    as_json: bool,
) -> None:
    """Play all roles of a PROTOCOL over one table, to try a method.

    Rows and columns are shuffled by the seed and dealt out to row groups × column
    groups. Fidelity is the adjusted Rand index between the labels and those of the same
    clustering on the pooled table: 1 means that nothing was lost.
    """
    left_out = {truth, *id_columns}
    columns = [name for name in column_names(data) if name not in left_out]
    X = matrix(open_table(data, columns=columns))
    parts = simulation.split(
        X, Layout.lattice(row_groups, column_groups), seed, columns
    )
    evaluated = simulation.evaluate(
        read_params(protocol, params), X, parts, seed, timer=time.perf_counter
    )
    report = _report(evaluated, data, truth)
    if labels is not None:
        csv.write_csv(pa.table({"label": evaluated.labels}), labels)
    if as_json:
        click.echo(json.dumps(report))
        return
    _print(report)


def _report(
    evaluated: simulation.Evaluated, data: Path, truth: str | None
) -> dict[str, Any]:
    run = evaluated.simulated
    clustered = evaluated.labels >= 0  # a label of -1 is of no cluster: noise
    report: dict[str, Any] = {
        "fidelity": evaluated.fidelity,
        "rounds": run.rounds,
        "cluster_sizes": np.bincount(evaluated.labels[clustered]).tolist(),
        "noise_rows": int(np.count_nonzero(~clustered)),
        "roles": {
            role: {"seconds": round(cost.seconds, 6), "sent_bytes": cost.sent_bytes}
            for role, cost in run.costs.items()
        },
    }
    if truth is not None:
        classes = np.unique(read_column(data, truth), return_inverse=True)[1]
        report["truth"] = metrics.agreement_with(classes, evaluated.labels)
        report["pooled_truth"] = metrics.agreement_with(classes, evaluated.pooled)
    return report


def _print(report: dict[str, Any]) -> None:
    click.echo(f"fidelity  {report['fidelity']:.4f}   (1: equal to pooled clustering)")
    for name in report.get("truth", {}):
        here, pooled = report["truth"][name], report["pooled_truth"][name]
        click.echo(f"{name:8}  {here:.4f}   pooled {pooled:.4f}")
    click.echo(f"rounds    {report['rounds']}")
    click.echo(f"clusters  {', '.join(map(str, report['cluster_sizes']))} rows")
    if report["noise_rows"]:
        click.echo(f"noise     {report['noise_rows']} rows")
    for role, cost in report["roles"].items():
        click.echo(
            f"{role:8}  {cost['seconds']:.3f} s   {cost['sent_bytes']:,} bytes sent"
        )
