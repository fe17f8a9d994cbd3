"""`coterie.simulate`: a whole session in this process, on tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from clustering_protocols import registry, simulation
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Params
from clustering_protocols.data import DataSource, MatrixSource, SparseSource, matrix
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.figures import Figures
from clustering_protocols.preparation.alignment.params import AlignedParams
from clustering_protocols.recipe import Preparation
from clustering_protocols.release import Release
from clustering_protocols.schema import Schema
from clustering_protocols.simulation import Cost, Simulated
from clustering_protocols.terms import Layout
from party_sdk.results import Result, naming_of
from party_sdk.tables import IdColumns, open_table
from party_sdk.trials.cautions import simulated_cautions
from party_sdk.trials.dealing import Dealt, deal
from party_sdk.trials.gaps import Rule, as_list, read_preparation
from party_sdk.trials.layouts import Said, layout_of_one
from party_sdk.trials.parties import Agreed, Brought, brought
from party_sdk.trials.quality import quality_table

_P = TypeVar("_P", bound=Params)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedSession:
    """How a simulated session went.

    Attributes
    ----------
    layout : Layout
    results : tuple of Result
        What each party gets, in the order of the slots.
    labels : int64 array of shape (n,), or list of int64 arrays
        Of a table that was dealt out, in its order; of several, those of each.
    n_clusters : int or None
        Of the run that counts.
    figures : Figures or None
        Of that run, where the protocol computes them.
    quality : mapping of str to array
        Those of each run, a column each; see :func:`~.quality.quality_table`.
    fidelity : float or None
        The adjusted Rand index between the labels and those of the same clustering of
        the pooled tables; 1 means that nothing was lost. None where a cell of the
        layout is empty: nobody holds what would be pooled.
    rounds : int
    costs : mapping of role to Cost
        Seconds and bytes sent of the analyst and of each party.
    warnings : tuple of str
        What may have spoilt the result; each was a ``UserWarning`` of :func:`simulate`.
    """

    layout: Layout
    results: tuple[Result, ...] = field(repr=False)
    labels: IntArray | list[IntArray] = field(repr=False)
    n_clusters: int | None
    figures: Figures | None
    quality: Mapping[str, Any] = field(repr=False)
    fidelity: float | None
    rounds: int
    costs: Mapping[str, Cost] = field(repr=False)
    whole: Whole = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """What nobody sees in a session that is no simulation: all rows beside their labels.

    Attributes
    ----------
    X : float64 array of shape (n, m)
        NaN where nobody holds a value.
    columns : sequence of str
    named : bool
        Whether the tables name them; of matrices they are ``x0 …``.
    order : int64 array of shape (m,)
        These columns as parties hold them, column group by column group.
    numbers : bool array of shape (m,)
        Which columns are numbers, not places of levels.
    labels : int64 array of shape (n,)
    memberships : float64 array of shape (n, n_clusters), optional
    """

    X: FloatArray
    columns: Sequence[str]
    named: bool
    order: IntArray
    numbers: Any
    labels: IntArray
    memberships: FloatArray | None


def simulate(
    params: Params,
    tables: Any,
    layout: Said | None = None,
    *,
    id_column: IdColumns = None,
    dictionary: Schema | Sequence[Schema] | None = None,
    preparation: Rule | Preparation | Sequence[Preparation] | None = None,
    evaluation: Evaluation | None = None,
    release: Release | None = None,
    choices: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    seed: int = 0,
) -> SimulatedSession:
    """Play all roles of a session in this process.

    Parameters
    ----------
    params : Params
        Of any protocol, e.g. ``DataCollaboration(n_clusters=3)``.
    tables : list of tables, or one table
        One table for each party, in the order of the slots. Or one table that is dealt
        out: rows and columns are shuffled by the seed. A table is what
        :func:`~party_sdk.tables.open_table` takes: a path, a matrix, or a table of
        pandas, polars or pyarrow.
    layout : 'rows', 'columns', (int, int) or Layout, optional
        'rows': each party holds other rows of the same columns. 'columns': each holds
        other columns of the same rows. A pair: row groups and column groups, parties in
        the order of rows. Without it tables with the same columns are split by rows,
        tables without a common column by columns. One table needs a pair or a Layout.
    id_column : str or sequence of str, optional
        What names the rows of every table. Parties that hold the same rows find them by
        it. Without it these rows stand in the same order, and, unless the parameters say
        how rows are aligned, they are aligned by their position.
    dictionary : Schema or sequence of Schema, optional
        What columns mean, of each column group; of one table, all of it.
    preparation : {'drop', 'mean', 'median'}, Preparation or sequence of it, optional
        What becomes of gaps and categories: one rule (see
        :func:`~party_sdk.trials.gaps.by_rule`), or what is said of each column group.
    evaluation : Evaluation, optional
        Several numbers of clusters, of which that of ``params`` is the largest.
    release : Release, optional
        What is let out beside labels: the profiles of the clusters.
    choices : mapping, optional
        What every party decides alone; see :meth:`Party.join`.
    allow : sequence of str
        Guards of tables that are switched off; see :class:`~party_sdk.tables.How`.
    seed : int
        Stands for all chance.

    Raises
    ------
    CoterieError
        With what a session of these parties would end with.

    Warns
    -----
    UserWarning
        Of what may have spoilt the result: clusters that coincide, that kept their place
        or still moved, parties of few columns that leave a dimension out, much noise.
    """
    fields = as_list(dictionary)
    agreed = Agreed(
        dictionary=fields, preparation=read_preparation(preparation, fields)
    )
    held: Dealt | Brought
    named: bool
    if isinstance(tables, list | tuple):
        held = brought(
            tables,
            layout,
            id_column=id_column,
            agreed=agreed,
            allow=allow,
            compared=lambda name: params.compared(name, shared=True),
        )
        named = all(map(_is_named, held.data.values()))
        params = _by_position(params, held)
    else:
        schema, prepared = agreed.of(0)
        source = open_table(
            tables,
            id_column=id_column,
            schema=schema,
            preparation=prepared,
            allow=allow,
        )
        named = _is_named(source)
        held = deal(
            matrix(source),
            source.columns,
            agreed,
            layout_of_one(layout),
            seed,
            ids=source.ids,
            naming=naming_of(source),
        )
    simulated = simulation.run(
        params,
        held.parts.layout,
        held.parts.data,
        seed,
        choices=dict.fromkeys(held.parts.layout.names, choices or {}),
        timer=time.perf_counter,
        dictionary=held.agreed.dictionary,
        preparation=held.agreed.preparation,
        evaluation=evaluation,
        release=release,
    )
    numbers = [
        getattr(run, "n_clusters", None) for run in registry.runs_of(params, evaluation)
    ]
    told = _told(held, simulated, _whole(held, simulated, named=named), numbers)
    for sentence in told.warnings:
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return told


def _is_named(source: DataSource) -> bool:
    return not isinstance(source, MatrixSource | SparseSource)


def _by_position(params: _P, held: Brought) -> _P:
    """Align rows without ids by their position, unless the parameters say how."""
    if not isinstance(params, AlignedParams) or "alignment" in params.model_fields_set:
        return params
    if any(source.ids is not None for source in held.data.values()):
        return params
    position = params.alignment.model_copy(update={"method": "position"})
    return params.model_copy(update={"alignment": position})


def _told(
    held: Dealt | Brought,
    simulated: Simulated,
    whole: Whole,
    numbers: Sequence[int | None],
) -> SimulatedSession:
    names = held.parts.layout.names
    outcomes = [simulated.outcomes[slot] for slot in names]
    labels: IntArray | list[IntArray] = whole.labels
    if isinstance(held, Brought):
        labels = [outcome.labels for outcome in outcomes]
    fidelity = _fidelity(held, simulated)
    return SimulatedSession(
        layout=held.parts.layout,
        results=tuple(_result(held, simulated, slot) for slot in names),
        labels=labels,
        n_clusters=numbers[simulated.chosen],
        figures=simulated.figures[simulated.chosen] if simulated.figures else None,
        quality=quality_table(numbers, simulated.figures),
        fidelity=fidelity,
        rounds=simulated.rounds,
        costs=simulated.costs,
        whole=whole,
        warnings=tuple(simulated_cautions(simulated, fidelity)),
    )


def _result(held: Dealt | Brought, simulated: Simulated, slot: str) -> Result:
    data, agreed = held.parts.data[slot], held.agreed
    own = agreed.of(held.parts.layout.slot(slot).column)
    result = Result.of(simulated.outcomes[slot], data, data.columns, *own)
    if isinstance(held, Brought):
        return result
    return replace(result, ids=held.ids_of(slot), naming=held.naming)


def _fidelity(held: Dealt | Brought, simulated: Simulated) -> float | None:
    if not held.parts.layout.regular:
        return None
    return simulation.beside_pooled(simulated, held.pooled, held.parts).fidelity


def _whole(held: Dealt | Brought, simulated: Simulated, *, named: bool) -> Whole:
    parts = held.parts
    order = np.concatenate(list(parts.columns))
    numbers = np.ones(len(order), dtype=bool)
    for group, schema in zip(parts.columns, held.agreed.dictionary or (), strict=False):
        numbers[group] = [not field.is_category for field in schema.fields]
    return Whole(
        X=held.pooled,
        columns=held.columns,
        named=named,
        order=order,
        numbers=numbers,
        labels=simulation.whole(simulated, len(held.pooled), parts),
        memberships=_memberships(held, simulated),
    )


def _memberships(held: Dealt | Brought, simulated: Simulated) -> FloatArray | None:
    """Return those of all rows; zeros of rows that did not take part."""
    found: FloatArray | None = None
    for slot, outcome in simulated.outcomes.items():
        if outcome.memberships is None:
            return None
        if found is None:
            found = np.zeros((len(held.pooled), outcome.memberships.shape[1]))
        found[held.parts.held[slot]] = np.nan_to_num(outcome.memberships)
    return found
