"""Simulate a session: split tables, run all roles in this process, measure the result.

`simulate`, the estimators and the commands all call :func:`play_session`, which runs
the session and compares it with clustering the pooled tables.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from clustering_protocols import catalogue, result_warnings, session_terms, simulation
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.simulation import (
    RoleCost,
    SessionEvaluation,
    SimulationResult,
)
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout
from party_sdk.admission.table_admission import row_warnings
from party_sdk.coordinator.option_parsing import Rule, as_sequence, expand_preparation
from party_sdk.lab.parties import (
    AgreedFields,
    LayoutSpec,
    PartyTables,
    as_layout,
    has_names,
    open_party_tables,
    split_table,
)
from party_sdk.results.cautions import site_agreement, site_effect_warnings
from party_sdk.results.label_files import naming_of
from party_sdk.results.manifests import describe_session, describe_table, digest_matrix
from party_sdk.results.results import Result
from party_sdk.tables import IdColumns, open_table

_LOSSLESS = 0.95
_AS_GOOD = 1.02
_SAME_CLUSTERS = 0.8


class SimulatedRun(NamedTuple):
    """A run of a session: the requested number of clusters, and its quality measures."""

    n_clusters: int | None
    figures: Figures | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedSession:
    """The result of a simulated session.

    params: the parameters of the selected run, after :meth:`.Params.resolve_sizes`.
    results: the result of each party, in the order of the slots.
    labels: int64 (n,) in the order of a single table that was split, or a list of int64
        arrays for several tables.
    n_clusters: the number of clusters of the selected run.
    figures: the quality measures of the selected run, if the protocol computes them.
    quality: mapping of str to array; the quality measures of each run as columns for
        ``pandas.DataFrame``: the requested ``n_clusters``, ``clusters_with_rows``, and
        each measure that some run has, with NaN for runs without it.
    runs: all runs, with the quality measures as the parties see them.
    chosen: the index of the selected run.
    fidelity: the adjusted Rand index between the labels and those of the same
        clustering of the pooled tables; 1 means that nothing was lost. None if a cell
        of the layout is empty, so that the tables cannot be pooled; a single table
        always can be.
    objectives: the objective of the session and of the pooled method with ten starts;
        None if the method minimises nothing, or if the tables cannot be pooled.
    site_agreement: how closely the clusters follow the row groups, from about 0 (not at
        all) to 1; None if all parties hold the same rows. See
        :func:`~party_sdk.results.cautions.site_agreement`.
    costs: the seconds and the sent bytes of the analyst and of each party.
    warnings: possible problems of the result; each was a ``UserWarning`` of
        :func:`simulate`.
    manifest: mapping of JSON values; terms, seeds, versions, digests of tables and
        labels, and the result, so that readers of a paper can repeat the session. None
        unless requested from :func:`simulate`.
    """

    layout: Layout
    params: Any
    results: tuple[Result, ...] = field(repr=False)
    labels: IntArray | list[IntArray] = field(repr=False)
    n_clusters: int | None
    figures: Figures | None
    quality: Mapping[str, Any] = field(repr=False)
    runs: tuple[SimulatedRun, ...] = field(repr=False)
    chosen: int
    fidelity: float | None
    objectives: Objectives | None
    site_agreement: float | None
    rounds: int
    costs: Mapping[str, RoleCost] = field(repr=False)
    whole: PooledRows = field(repr=False)
    warnings: tuple[str, ...] = ()
    manifest: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def objective_ratio(self) -> float | None:
        """Return the objective divided by that of the pooled method with ten starts."""
        return self.objectives and self.objectives.ratio

    @property
    def objective_ratio_same_rules(self) -> float | None:
        """Return the objective divided by the pooled method's under the session's rules."""
        return self.objectives and self.objectives.ratio_same_rules

    @property
    def pooled_agreement(self) -> float | None:
        """Return the adjusted Rand index to the best of ten pooled starts."""
        return self.objectives and self.objectives.agreement


def simulate(
    params: Params,
    tables: Any,
    layout: LayoutSpec | None = None,
    *,
    id_column: IdColumns = None,
    dictionary: Schema | Sequence[Schema] | None = None,
    preparation: Rule | Preparation | Sequence[Preparation] | None = None,
    evaluation: Evaluation | None = None,
    choices: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    seed: int = 0,
    manifest: bool = False,
    **sections: Any,
) -> SimulatedSession:
    """Run all roles of a session in this process.

    params: the parameters of any protocol, e.g. ``DataCollaboration(n_clusters=3)``.
        Protections of rows that reduce quality are off unless they are set, because
        nobody needs them here: parties of `dc` send all dimensions.
    tables: one table for each party, in the order of the slots, or a single table that
        is split after the seed has shuffled its rows and columns. A table is what
        :func:`~party_sdk.tables.open_table` accepts: a path, a matrix, or a table of
        pandas, polars or pyarrow.
    layout: 'rows', 'columns', (int, int) or Layout. 'rows': each party holds different
        rows of the same columns. 'columns': each holds different columns of the same
        rows. A pair: row groups and column groups, with parties row by row. Without a
        layout, tables with the same columns are split by rows, and tables without a
        common column by columns. A single table needs a pair or a Layout.
    id_column: the columns that identify the rows of every table, by which parties that
        hold the same rows find them. Without ids, rows must be in the same order, and
        are aligned by position unless the parameters choose another alignment.
    dictionary: the meaning of the columns, per column group or for the single table.
    preparation: {'drop', 'mean', 'median'}, Preparation or sequence of these; how
        missing values and categories are treated: a rule (see
        :func:`~party_sdk.coordinator.option_parsing.preparations_by_rule`), or the
        preparation of each column group.
    evaluation: several numbers of clusters; the largest is that of ``params``.
    choices: the decisions that every party makes; see :meth:`Party.join`.
    allow: the checks of tables that are disabled; see
        :class:`~party_sdk.tables.ReadOptions`.
    seed: determines all random draws.
    manifest: whether to read all tables once more, for the digests of a manifest.
    **sections: further sections of the terms by name, e.g. ``release``.

    Raises CoterieError: the error with which a session of these parties would end.

    Warns with UserWarning: about possible problems: clusters that follow the sites,
        coincide, are too small to move or have not converged; a pooled analysis that
        finds better or different clusters; parties that omit a dimension; much noise.
    """
    defaults = catalogue.find_protocol(params).in_simulations
    unset = defaults.keys() - params.model_fields_set
    params = params.model_copy(update={name: defaults[name] for name in unset})
    dictionaries = None
    if dictionary is not None:
        dictionaries = [schema.used for schema in as_sequence(dictionary) or ()]
    fields = AgreedFields(
        dictionary=dictionaries,
        preparation=expand_preparation(preparation, dictionaries),
    )
    if isinstance(tables, list | tuple):
        split = open_party_tables(
            tables,
            layout,
            id_column=id_column,
            fields=fields,
            allow=allow,
            normalise_id=partial(params.normalise_id, shared=True),
        )
        params = _align_by_position(params, split.parts.data)
    else:
        split = _open_single_table(tables, layout, fields, id_column, allow, seed)
    session = play_session(
        split,
        params,
        seed,
        choices=choices or {},
        evaluation=evaluation,
        manifest=manifest,
        **sections,
    )
    for sentence in session.warnings:
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return session


def _open_single_table(
    table: Any,
    layout: LayoutSpec | None,
    fields: AgreedFields,
    id_column: IdColumns,
    allow: Sequence[str],
    seed: int,
) -> PartyTables:
    """Open a table, and split it between the parties of a layout."""
    if layout is None or isinstance(layout, str):
        raise InvalidParameters(
            "One table is split between parties: choose how many, as in layout=(3, 1) "
            "for three row groups. Pass the tables of several parties as a list."
        )
    schema, prepared = fields.for_group(0)
    source = open_table(
        table, id_column=id_column, schema=schema, preparation=prepared, allow=allow
    )
    return split_table(
        matrix(source),
        source.columns,
        fields,
        as_layout(layout),
        seed,
        has_names=has_names(source),
        ids=source.ids,
        naming=naming_of(source),
    )


def _align_by_position(params: Params, data: Mapping[str, DataSource]) -> Params:
    """Align rows without ids by position, unless the parameters choose an alignment."""
    if not isinstance(params, AlignedParams) or "alignment" in params.model_fields_set:
        return params
    if any(source.ids is not None for source in data.values()):
        return params
    position = params.alignment.model_copy(update={"method": "position"})
    return params.model_copy(update={"alignment": position})


# Running the session, and measuring its result


def play_session(
    split: PartyTables,
    params: Params,
    seed: int,
    *,
    choices: Mapping[str, Any] = MappingProxyType({}),
    evaluation: Evaluation | None = None,
    manifest: bool = False,
    **sections: Any,
) -> SimulatedSession:
    """Run all roles of a session on the tables of the parties, and measure the result.

    evaluation, manifest, choices, **sections: as for :func:`simulate`. To repeat a
        session, also pass its id as ``session``, and the public key in its terms as
        ``analyst``.

    Raises CoterieError: the error with which a session of these parties would end.
    """
    names = split.layout.names
    simulated = simulation.run(
        params,
        split.layout,
        split.parts.data,
        seed,
        choices=dict.fromkeys(names, choices),
        timer=time.perf_counter,
        dictionary=split.fields.dictionary,
        preparation=split.fields.preparation,
        evaluation=evaluation,
        **sections,
    )
    inputs = (simulated, split.pooled_values, split.parts)
    measured = simulation.compare_with_pooled(*inputs)
    objectives = simulation.compare_objectives(*inputs)
    can_be_pooled = simulation.can_be_pooled(split.pooled_values, split.parts)
    fidelity = measured.fidelity if can_be_pooled and not params.describes else None
    runs = session_terms.params_per_run(params, evaluation)
    numbers = [getattr(run, "n_clusters", None) for run in runs]
    results = tuple(_party_result(split, simulated, slot) for slot in names)
    sites = _count_by_site(split.layout, results)
    # Some protocols send the figures of a single run only to the coordinator.
    run_figures = results[0].figures or simulated.figures or (None,) * len(numbers)
    terms = simulated.trace.session.terms
    session = SimulatedSession(
        layout=split.layout,
        params=simulated.trace.session.params,
        results=results,
        labels=[result.labels for result in results]
        if split.table is None
        else measured.labels,
        n_clusters=numbers[simulated.chosen],
        figures=simulated.figures[simulated.chosen] if simulated.figures else None,
        quality=_tabulate_figures(numbers, simulated.figures),
        runs=tuple(map(SimulatedRun, numbers, run_figures)),
        chosen=simulated.chosen,
        fidelity=fidelity,
        objectives=objectives,
        site_agreement=site_agreement(sites),
        rounds=simulated.rounds,
        costs=simulated.costs,
        whole=build_pooled_rows(split, simulated, measured),
        warnings=tuple(
            dict.fromkeys(
                [
                    *site_effect_warnings(sites),
                    *chain.from_iterable(
                        row_warnings(terms, slot, split.parts.data[slot])
                        for slot in names
                    ),
                    *_session_warnings(simulated, fidelity),
                    *_objective_warnings(objectives),
                ]
            )
        ),
    )
    if not manifest:
        return session
    record = build_manifest(session, split, simulated, seed, choices)
    return replace(session, manifest=record)


def _party_result(split: PartyTables, simulated: SimulationResult, slot: str) -> Result:
    data = split.parts.data[slot]
    own = split.fields.for_group(split.layout.slot(slot).column)
    result = Result.of(simulated.outcomes[slot], data, data.columns, *own)
    if split.table is None:
        return result
    return replace(result, ids=split.ids_of(slot), naming=split.naming)


def _tabulate_figures(
    numbers: Sequence[int | None], figures: Sequence[Figures]
) -> Mapping[str, Any]:
    """Return the quality measures of runs as columns; see ``SimulatedSession.quality``."""
    table: dict[str, Any] = {"n_clusters": np.array(numbers)}
    values_by_run = [run.values for run in figures]
    for name in values_by_run[0] if values_by_run else ():
        column = [run[name] for run in values_by_run]
        has_value = [value is not None for value in column]
        if any(has_value):
            column_name = "clusters_with_rows" if name == "n_clusters" else name
            kind = None if all(has_value) else np.float64
            table[column_name] = np.array(column, dtype=kind)
    return table


def _session_warnings(
    simulated: SimulationResult, fidelity: float | None
) -> Iterator[str]:
    """Yield warnings about a simulated session.

    Warnings that follow from the terms are omitted if the fidelity is high. They are
    also omitted if the number of rows limits the updates of the protocol, because the
    result shows whether the updates were enough.
    """
    session = simulated.trace.session
    run, layout = session.runs[simulated.chosen], session.layout
    is_low = fidelity is None or fidelity < _LOSSLESS
    if is_low and not catalogue.find_protocol(run).rows_limit_updates:
        fidelity_note = "" if fidelity is None else f" Here it is {fidelity:.2f}."
        for sentence in result_warnings.find_session_warnings(
            run, layout, session.column_widths
        ):
            yield f"{sentence}{fidelity_note}"
    for outcome in simulated.outcomes.values():
        sizes = outcome.cluster_sizes
        yield from result_warnings.find_result_warnings(
            run,
            layout=layout,
            report=outcome.report,
            figures=outcome.figures[outcome.chosen] if outcome.figures else None,
            sizes=None if sizes is None else sizes.tolist(),
            runs=simulated.figures or (),
        )


def _count_by_site(layout: Layout, results: Sequence[Result]) -> IntArray:
    """Return int64 (sites, k): the number of rows of each row group in each cluster."""
    slots = [group[0] for group in layout.row_groups]
    by_slot = dict(zip(layout.names, results, strict=True))
    clustered = [by_slot[slot].labels[by_slot[slot].labels >= 0] for slot in slots]
    k = 1 + max((int(labels.max(initial=-1)) for labels in clustered), default=-1)
    return np.array([np.bincount(labels, minlength=k) for labels in clustered])


def _objective_warnings(objectives: Objectives | None) -> Iterator[str]:
    if objectives is None or objectives.ratio is None:
        return
    ratio, same_rules = objectives.ratio, objectives.ratio_same_rules
    if ratio > _AS_GOOD:
        by_rules = ""
        if same_rules is not None and same_rules != ratio:
            by_rules = (
                f"; {same_rules:.2f} times that of the pooled method under the session's "
                "rules (objective_ratio_same_rules)"
            )
        yield (
            f"The objective is {ratio:.2f} times that of the pooled method with ten "
            f"starts (objective_ratio){by_rules}."
        )
    elif objectives.agreement is not None and objectives.agreement < _SAME_CLUSTERS:
        yield (
            f"The clusters differ from those of the pooled method with ten starts: "
            f"pooled_agreement {objectives.agreement:.2f}, at an objective_ratio of "
            f"{ratio:.3f}. Several clusterings are nearly as good, or a small cluster "
            "was missed: compare the sizes, and try another seed."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledRows:
    """The rows of all parties with their labels, which nobody sees in a real session.

    X: float64 (n, m); NaN where no party holds a value.
    has_names: whether the tables name the columns; those of matrices are ``x0 …``.
    order: int64 (m,); the indices of the columns, column group by column group.
    numbers: bool (m,); whether a column is a number to cluster, not an index of levels.
    labels, pooled: int64 (n,); the labels of the session, and of the same clustering of
        the pooled tables; -1 for rows that did not take part, and in ``pooled`` for all
        rows if the tables cannot be pooled.
    memberships: float64 (n, n_clusters) or None.
    """

    X: FloatArray
    columns: Sequence[str]
    has_names: bool
    order: IntArray
    numbers: Any
    labels: IntArray
    pooled: IntArray
    memberships: FloatArray | None


def build_pooled_rows(
    split: PartyTables, simulated: SimulationResult, measured: SessionEvaluation
) -> PooledRows:
    """Return the rows of all parties with their labels in a simulated session."""
    parts = split.parts
    order = np.concatenate(list(parts.columns))
    numbers = np.ones(len(order), dtype=bool)
    for group, schema in zip(
        parts.columns, split.fields.dictionary or (), strict=False
    ):
        numbers[group] = [
            not field.is_category and field.role == "cluster" for field in schema.fields
        ]
    return PooledRows(
        X=split.pooled_values,
        columns=split.columns,
        has_names=split.has_names,
        order=order,
        numbers=numbers,
        labels=measured.labels,
        pooled=measured.pooled,
        memberships=_pooled_memberships(split, simulated),
    )


def _pooled_memberships(
    split: PartyTables, simulated: SimulationResult
) -> FloatArray | None:
    """Return the memberships of all rows; zeros for rows that did not take part."""
    memberships: FloatArray | None = None
    for slot, outcome in simulated.outcomes.items():
        if outcome.memberships is None:
            return None
        if memberships is None:
            memberships = np.zeros(
                (len(split.pooled_values), outcome.memberships.shape[1])
            )
        memberships[split.parts.held[slot]] = np.nan_to_num(outcome.memberships)
    return memberships


def build_manifest(
    simulated_session: SimulatedSession,
    split: PartyTables,
    simulated: SimulationResult,
    seed: int,
    choices: Mapping[str, Any],
) -> dict[str, Any]:
    """Return terms, seeds, versions, digests and the result, as JSON values."""
    session, labels = simulated.trace.session, simulated_session.whole.labels
    figures = simulated_session.figures
    return {
        "kind": "simulation-manifest",
        **describe_session(session.terms, session.agreement_digest),
        "seed": seed,
        "dealt_by_seed": split.table is not None,
        "choices": dict(choices),
        "tables": {
            slot: describe_table(data) for slot, data in split.parts.data.items()
        },
        "result": {
            "n_clusters": simulated_session.n_clusters,
            "sizes": np.bincount(labels[labels >= 0]).tolist(),
            "noise_rows": int(np.count_nonzero(labels < 0)),
            "labels_sha256": digest_matrix(labels),
            "figures": None if figures is None else figures.model_dump(mode="json"),
            "fidelity": simulated_session.fidelity,
            "pooled_agreement": simulated_session.pooled_agreement,
            "objective_ratio": simulated_session.objective_ratio,
            "objective_ratio_same_rules": simulated_session.objective_ratio_same_rules,
            "site_agreement": simulated_session.site_agreement,
            "rounds": simulated_session.rounds,
        },
    }
