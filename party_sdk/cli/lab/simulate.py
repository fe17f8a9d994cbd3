"""`coterie simulate`: try a method by playing all roles of a session in one process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from party_sdk.cli.options import (
    SEED,
    Choose,
    Force,
    Missing,
    Param,
    Preparations,
    ReadingOptions,
    check_new_files,
)
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import Output, say
from party_sdk.cli.terminal.result_lines import profile_lines, run_table_lines
from party_sdk.coordinator.option_parsing import parse_values
from party_sdk.results.output_files import write_atomically

if TYPE_CHECKING:
    from party_sdk.cli.lab.cases import Case
    from party_sdk.lab.simulated_session import SimulatedSession

Truth: TypeAlias = Annotated[
    str | None, option("A column of true classes: only compared, not clustered.")
]


@command(
    common="data id-column schema missing row-groups column-groups param truth labels help-all"
)
def simulate(
    protocol: Annotated[str, argument()],
    *,
    data: Annotated[Path, option("A file: text, Excel, Parquet, SPSS, SAS or Stata.")],
    truth: Truth = None,
    reading: ReadingOptions,
    preparations: Preparations = (),
    missing: Missing = None,
    row_groups: Annotated[
        int | None,
        option("Number of row groups: each holds different people.", low=1, high=1000),
    ] = None,
    column_groups: Annotated[
        int | None,
        option("Number of column groups with different features.", low=1, high=1000),
    ] = None,
    params: Param = (),
    choose: Choose = None,
    seed: Annotated[int, option("Seed of split and session.", type=SEED)] = 0,
    labels: Annotated[
        Path | None,
        option("File for the labels (CSV, Parquet or Excel, by its extension)."),
    ] = None,
    manifest: Annotated[
        Path | None,
        option(
            "File for a paper (JSON): terms, seeds, versions, digests, and the result."
        ),
    ] = None,
    force: Force = False,
) -> Output:
    """Play all roles of a PROTOCOL on one table, to try a method.

    Rows and columns are shuffled with the seed and divided among row groups × column
    groups. The default is three row groups, or three column groups if the protocol
    takes no row groups. Fidelity is the adjusted Rand index between the labels and
    those of the same clustering of the pooled table: 1 means that nothing was lost. The
    objective ratio compares the objective with the best of ten pooled starts: 1 is as
    good. With several numbers of clusters (--param n_clusters=2..8), the figures of all
    runs are shown, and the selected run. 'coterie compare' compares several methods.
    """
    import numpy as np

    from party_sdk.cli.lab.cases import add_dictionary, build_case, read_trial_table
    from party_sdk.lab.parties import default_lattice
    from party_sdk.results.label_files import write_labels

    check_new_files([labels, manifest], data, force=force)
    options = add_dictionary(data, reading.read_options(), preparations, missing, truth)
    table, values = read_trial_table(data, options, truth), parse_values(params)
    for (
        warning
    ) in table.source.report.warning_sentences:  # a refusal may follow from them
        say(f"warning: {warning}", err=True)
    lattice = default_lattice(protocol, row_groups, column_groups)
    case = build_case(
        data.name, table, protocol, values, lattice, choose=choose, seed=seed
    )
    session, source = case.simulate(seed, manifest=manifest is not None), table.source
    own_labels = session.whole.labels
    if labels is not None:
        write_labels(labels, own_labels, source.ids, source.naming, {})
    if manifest is not None:
        write_atomically(json.dumps(session.manifest, indent=1).encode(), manifest)
    profiles = session.results[0].profiles
    description = next(
        (profile for profile in profiles if profile.is_description), None
    )
    report = {
        **case.describe_session(session),
        "description": description and description.model_dump(mode="json"),
        "cluster_sizes": np.bincount(own_labels[own_labels >= 0]).tolist(),
        "noise_rows": int(np.count_nonzero(own_labels < 0)),
        "roles": {
            role: {"seconds": round(cost.seconds, 6), "sent_bytes": cost.sent_bytes}
            for role, cost in session.costs.items()
        },
        "warnings": [*source.report.warnings, *session.warnings],
    }
    return Output(report, _simulation_lines(case, session, report))


def _simulation_lines(
    case: "Case", session: "SimulatedSession", report: dict[str, Any]
) -> Iterator[str]:
    for warning in session.warnings:
        say(f"warning: {warning}", err=True)
    if report["description"] is not None:
        yield from profile_lines(session.results[0].profiles[:1])
        yield ""
    elif case.evaluation is not None:
        from party_sdk.cli.lab.case_table import case_lines, case_notes

        result = {"protocol": case.protocol, "layout": case.layout, **report}
        result |= {"risks": case.risks, "risks_of_several_runs": case.run_risks}
        yield from case_lines([result])
        yield from case_notes([{**result, "warnings": session.warnings}], [])
        yield ""
    elif figures := [run.figures for run in session.runs if run.figures]:
        from clustering_protocols.wire.answers import RunLine

        yield from run_table_lines(
            [
                RunLine(
                    n_clusters=figure.n_clusters, figures=figure.values, chosen=False
                )
                for figure in figures
            ]
        )
        yield ""
    if report["fidelity"] is not None:
        equal = "(1: equal to pooled clustering from the same start)"
        yield f"fidelity  {report['fidelity']:.4f}   {equal}"
    if report["objective_ratio"] is not None:
        same_rules = report["objective_ratio_same_rules"]
        if report["pooled_agreement"] is not None:
            note = "(with the best of ten pooled starts)"
            yield f"agreement {report['pooled_agreement']:.4f}   {note}"
        yield (
            f"objective {report['objective_ratio']:.4f}   (over the best of ten pooled "
            f"starts; {same_rules:.4f} over pooled clustering under the same rules)"
        )
    if report["site_agreement"] is not None:
        yield (
            f"sites     {report['site_agreement']:.4f}   (0: clusters say nothing "
            "about the site, 1: everything)"
        )
    for name, agreement in report.get("truth", {}).items():
        yield f"{name:8}  {agreement:.4f}   pooled {report['pooled_truth'][name]:.4f}"
    yield f"rounds    {report['rounds']}"
    if report["description"] is None:
        yield f"clusters  {', '.join(map(str, report['cluster_sizes']))} rows"
    if report["noise_rows"]:
        yield f"noise     {report['noise_rows']} rows"
    for role, cost in report["roles"].items():
        volume = f"{cost['sent_bytes']:,} bytes sent"
        yield f"{role:8}  {cost['seconds']:.3f} s   {volume}"
