"""Cases of a comparison: each is a protocol, a table and a layout, with its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.contract import Params
from clustering_protocols.numerics import scores
from clustering_protocols.numerics.data_source import keep_rows, matrix
from clustering_protocols.quality.runs import favours_one_cluster
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation import ANALYST
from clustering_protocols.simulation.session import SIMULATION
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.session_risks import risk_sentences
from clustering_protocols.terms.terms import read_terms
from party_sdk.coordinator.option_parsing import (
    Rule,
    parse_runs,
    parse_values,
    read_preparation,
)
from party_sdk.lab.parties import (
    AgreedFields,
    Lattice,
    fields_of_groups,
    regular_layout,
    split_table,
)
from party_sdk.lab.simulated_session import SimulatedRun, SimulatedSession, play_session
from party_sdk.tables import (
    ReadOptions,
    Table,
    examine_table,
    list_columns,
    open_clusterable,
    read_column,
)
from party_sdk.tables.drafts import draft_options

_MIN_COLUMNS: Final = 2
"""The fewest columns per party in a default layout: some methods need two."""

_MAX_NAMES: Final = 10
Document = dict[str, Any]
"""A dictionary of JSON values; docs/choosing.md describes those of a case."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A session to simulate.

    file: the name of the table.
    risks: the codes of the session's risks, and the sentence that explains each.
    run_risks: the codes of the risks that several runs in one session add.
    """

    file: str
    table: TrialTable = field(repr=False)
    protocol: str
    params: Params
    evaluation: Evaluation | None
    lattice: Lattice
    risks: Mapping[str, str]
    run_risks: tuple[str, ...]

    @property
    def layout(self) -> str:
        """Return the layout as users write it, such as 3x1."""
        return format_lattice(self.lattice)

    @property
    def name(self) -> str:
        """Return the table, the protocol and the layout, separated by spaces."""
        return f"{self.file} {self.protocol} {self.layout}"

    @property
    def cluster_counts(self) -> list[int | None]:
        """Return each run's number of clusters; None if the run itself finds it."""
        runs = session_terms.params_per_run(self.params, self.evaluation)
        return [getattr(run, "n_clusters", None) for run in runs]

    def simulate(self, seed: int, *, manifest: bool = False) -> SimulatedSession:
        """Simulate the session on the table, split among the parties by the seed.

        manifest: as for :func:`~party_sdk.lab.simulated_session.simulate`.
        """
        table, layout = self.table, regular_layout(self.lattice)
        split = split_table(table.X, table.columns, table.agreed_fields, layout, seed)
        return play_session(
            split, self.params, seed, evaluation=self.evaluation, manifest=manifest
        )

    def run(self, seed: int) -> Document:
        """Simulate the session, and return its result or its error as JSON values."""
        try:
            outcome = self.describe_session(self.simulate(seed))
        except CoterieError as error:
            outcome = {"error": error.detail}
        return {
            "file": self.file,
            "protocol": self.protocol,
            "layout": self.layout,
            "params": catalogue.find_changed_params(self.params),
            **outcome,
            "risks": dict(self.risks),
            "risks_of_several_runs": list(self.run_risks),
        }

    def describe_session(self, session: SimulatedSession) -> Document:
        """Return the result of a simulated session as JSON values."""
        costs, evaluation, classes = session.costs, self.evaluation, self.table.classes
        slowest = max(c.seconds for role, c in costs.items() if role != ANALYST)
        labels = {"truth": session.whole.labels, "pooled_truth": session.whole.pooled}
        return {
            "lanes": [_describe_run(run) for run in session.runs],
            "chosen": session.runs[session.chosen].n_clusters,
            "chosen_by": evaluation
            and evaluation.deciding_figure(session.results[0].figures),
            # True if the gap statistic finds only one cluster
            "no_clusters": favours_one_cluster(
                [r.figures for r in session.runs if r.figures]
            ),
            "warnings": list(session.warnings),
            "fidelity": session.fidelity,
            "pooled_agreement": session.pooled_agreement,
            "objective_ratio": session.objective_ratio,
            "objective_ratio_same_rules": session.objective_ratio_same_rules,
            "site_agreement": session.site_agreement,
            **{
                name: scores.agreement_scores(classes, own_labels)
                for name, own_labels in labels.items()
                if classes is not None
            },
            "rounds": session.rounds,
            "sent_bytes": sum(cost.sent_bytes for cost in costs.values()),
            "seconds": {
                "analyst": round(costs[ANALYST].seconds, 6),
                "slowest_party": round(slowest, 6),
            },
        }


def _describe_run(run: SimulatedRun) -> Document:
    if run.figures is None:
        return {"n_clusters": run.n_clusters}
    figures = dict(run.figures)
    with_rows = figures.pop("n_clusters")
    return {"n_clusters": run.n_clusters, "clusters_with_rows": with_rows, **figures}


def format_lattice(lattice: Lattice) -> str:
    """Return a layout as users write it, such as 3x1."""
    return f"{lattice[0]}x{lattice[1]}"


def default_lattices(n_columns: int) -> list[Lattice]:
    """Return 3x1 and, if each party gets two columns, also 1x3 (or 1x2) and 2x2."""
    fits = [groups for groups in (3, 2) if n_columns >= _MIN_COLUMNS * groups]
    return [(3, 1), *([(1, fits[0]), (2, 2)] if fits else [])]


# Planning


def plan_cases(
    tables: Mapping[str, TrialTable],
    protocols: Sequence[str],
    lattices: Sequence[Lattice],
    n_clusters: Any,
    params: Sequence[str],
    *,
    choose: str | None,
    seed: int,
) -> tuple[list[Case], list[Document]]:
    """Return the cases that can run, and those that cannot, each with a reason.

    protocols: names; by default all protocols that have methods to recommend.
    lattices: by default, the result of :func:`default_lattices`.
    n_clusters: as :func:`~party_sdk.coordinator.option_parsing.parse_runs` takes it.
    params: NAME=VALUE for all protocols, or PROTOCOL.NAME=VALUE for a single one.

    Raises InvalidParameters if a protocol is unknown, or if no case can run.
    """
    values = _values_by_protocol(protocols, n_clusters, params)
    cases: list[Case] = []
    omissions: list[Document] = []
    for file, table in tables.items():
        for protocol, protocol_values in values.items():
            for lattice in lattices or default_lattices(len(table.columns)):
                try:
                    case = build_case(
                        file,
                        table,
                        protocol,
                        protocol_values,
                        lattice,
                        choose=choose,
                        seed=seed,
                    )
                except InvalidParameters as error:
                    cell = {"protocol": protocol, "layout": format_lattice(lattice)}
                    omissions.append({"file": file, **cell, "reason": error.detail})
                else:
                    cases.append(case)
    if not cases:
        names_by_reason: dict[str, list[str]] = {}
        for omission in omissions:
            name = f"{omission['protocol']} {omission['layout']}"
            names_by_reason.setdefault(omission["reason"], []).append(name)
        summary = " ".join(
            f"{', '.join(n)}: {reason}" for reason, n in names_by_reason.items()
        )
        raise InvalidParameters(f"There is nothing to compare. {summary}")
    return cases, omissions


def _values_by_protocol(
    protocols: Sequence[str], n_clusters: Any, params: Sequence[str]
) -> dict[str, dict[str, Any]]:
    catalogued = catalogue.catalogue()
    names = protocols or [name for name, entry in catalogued.items() if entry.methods]
    texts: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        catalogue.protocol(name)  # raises if the name is unknown
    for text in params:
        prefix, dot, parameter = text.partition(".")
        if not dot or "=" in prefix or prefix not in catalogued:
            for protocol_texts in texts.values():
                protocol_texts.append(text)
        elif prefix in texts:
            texts[prefix].append(parameter)
        else:
            raise InvalidParameters(f"{text!r}: {prefix!r} is not compared.")
    cluster_values = {"n_clusters": n_clusters}
    return {
        name: {**cluster_values, **parse_values(tuple(t))} for name, t in texts.items()
    }


def build_case(
    file: str,
    table: TrialTable,
    protocol: str,
    values: Mapping[str, Any],
    lattice: Lattice,
    *,
    choose: str | None,
    seed: int,
) -> Case:
    """Build a case; raise InvalidParameters if the protocol does not fit the table.

    values: parameters, which override the protocol's defaults for simulations.
    """
    protocol_entry = catalogue.protocol(protocol)
    counts = protocol_entry.methods and all(
        method.data == "counts" for method in protocol_entry.methods
    )
    if counts and np.nanmin(table.X) < 0:
        raise InvalidParameters("It needs counts; the table has negative numbers.")
    all_values, evaluation = parse_runs(
        {**protocol_entry.in_simulations, **values}, choose
    )
    layout = regular_layout(lattice)
    fields = fields_of_groups(table.X.shape, table.columns, table.agreed_fields, layout)
    params = catalogue.parse_params(protocol, all_values)
    request = session_terms.build_request(
        params,
        layout,
        evaluation=evaluation,
        seed=seed,
        dictionary=fields.dictionary,
        preparation=fields.preparation,
    )
    terms = session_terms.draw_up_terms(SIMULATION, request)
    run_risks = (
        protocol_entry.risks_of_runs(params, layout) if evaluation is not None else ()
    )
    return Case(
        file=file,
        table=table,
        protocol=protocol,
        params=params,
        evaluation=evaluation,
        lattice=lattice,
        risks=risk_sentences(session_terms.risks_of_terms(read_terms(terms))),
        run_risks=tuple(f"{protocol}.{code}" for code in run_risks),
    )


# Reading the table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """A table on which methods are tried.

    source: the whole table.
    X: float64 (n, m); the rows to cluster, which are all rows or a sample.
    classes: int64 (n,); the true classes of these rows, or None if they are unknown.
    """

    options: ReadOptions
    source: Table
    X: FloatArray = field(repr=False)
    classes: IntArray | None = field(repr=False)

    @property
    def columns(self) -> Sequence[str]:
        """Return the names of the clustered columns."""
        return self.source.columns

    @property
    def agreed_fields(self) -> AgreedFields:
        """Return the dictionary and the preparation of the table; each may be None."""
        schema, preparation = self.options.schema, self.options.preparation
        return AgreedFields(
            dictionary=None if schema is None else [schema.used],
            preparation=None if preparation is None else [preparation],
        )


def add_dictionary(
    data: Path,
    options: ReadOptions,
    preparation_files: tuple[Path, ...],
    missing: Rule | None,
    truth: str | None,
) -> ReadOptions:
    """Add a dictionary and a preparation to the options for reading a table.

    If no dictionary is named and some columns are not numeric, a dictionary is drafted.

    Raises InvalidData if cells are empty, and no rule for missing values is named.
    """
    report, table = examine_table(data, _exclude_truth(data, options, truth))
    is_plain = table is not None and not (report.obstacles or missing)
    if options.schema is None and options.columns is None and not is_plain:
        options = draft_options(
            data, options, () if truth is None else (truth,)
        ).options
    schemas = None if options.schema is None else [options.schema]
    prepared = read_preparation(preparation_files, missing, schemas)
    clustered = options.columns if schemas is None else schemas[0].clustered_part.names
    gaps = [
        column.name
        for column in report.columns
        if column.missing and (clustered is None or column.name in clustered)
    ]
    if gaps and not (preparation_files or missing):
        raise InvalidData(
            f"{data.name}: cells are empty in {', '.join(map(repr, gaps[:_MAX_NAMES]))}.",
            remedy="Choose a rule for them: --missing mean or drop, or median if the "
            "dictionary has bounds.",
        )
    return replace(options, preparation=prepared[0] if prepared else None)


def read_trial_table(
    data: Path,
    options: ReadOptions,
    truth: str | None,
    *,
    row_limit: int | None = None,
    seed: int = 0,
) -> TrialTable:
    """Read a table. If it has more rows than the limit, draw a random sample of them."""
    classes: IntArray | None = None
    if truth is not None:
        encoded = np.unique(read_column(data, truth, options), return_inverse=True)
        classes = encoded[1].astype(np.int64)
    source = open_clusterable(data, _exclude_truth(data, options, truth))
    if row_limit is None or source.n_rows <= row_limit:
        return TrialTable(
            options=options, source=source, X=matrix(source), classes=classes
        )
    sample = np.random.default_rng(seed).permutation(source.n_rows)[:row_limit]
    rows = np.sort(sample).astype(np.int64)
    return TrialTable(
        options=options,
        source=source,
        X=matrix(keep_rows(source, rows)),
        classes=None if classes is None else classes[rows],
    )


def _exclude_truth(data: Path, options: ReadOptions, truth: str | None) -> ReadOptions:
    if truth is None or options.columns is not None or options.schema is not None:
        return options
    left_out = {truth, *options.id_columns}
    names = list_columns(data, options)
    return replace(options, columns=[name for name in names if name not in left_out])
