"""Try a table without any options: draft a dictionary, impute, and simulate a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource, keep_rows, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.profiles.profile import own_profile
from clustering_protocols.simulation.session import SIMULATION
from clustering_protocols.terms.preparation import Preparation, build_imputation
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import read_terms
from coterie_pages.models import RunReport
from coterie_pages.views.terms_sheet import sheet_of, versions_of
from party_sdk.coordinator.option_parsing import parse_runs
from party_sdk.lab.parties import AgreedFields, regular_layout, split_table
from party_sdk.lab.simulated_session import SimulatedSession, play_session
from party_sdk.reports.run_reports import result_details
from party_sdk.results.plots import project_rows
from party_sdk.tables import DEFAULTS, ReadOptions, Table, open_clusterable
from party_sdk.tables.drafts import FirstDraft, draft_options

_LAYOUT: Final = regular_layout((3, 1))
_RANGES: Final = ("2..8", "2..5", "2..3")
_PROTOCOLS: Final = ("llf", "dc")
_MOST_ROWS: Final = 3_000
"""The maximum number of rows that are sampled to choose the number of clusters."""

_MOST_POINTS: Final = 3_000
_MIN_CLUSTER: Final = 10
_CODES_REMEDY: Final = (
    'If such values mean "missing", clusters of this trial may be these codes: correct '
    "the table, or list the codes in a mapping and use `coterie simulate --mapping`."
)
_CODES_CAUTION: Final = (
    "Some values are far from all others, like codes for missing values: clusters of "
    "this trial may be these codes. `coterie table` shows them."
)
"""Replaces the outliers in a report, which quotes no cells because it may be passed on."""

_SEED: Final = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """The result of trying a table without any options.

    suggested: a sentence about the suggested method and number of clusters.
    """

    file: str
    draft: FirstDraft
    source: Table = field(repr=False)
    protocol: str
    session: SimulatedSession = field(repr=False)
    suggested: str
    report: RunReport = field(repr=False)


def try_table(
    path: Path,
    options: ReadOptions = DEFAULTS,
    on_warning: Callable[[str], None] | None = None,
) -> Trial:
    """Simulate a session with suggested columns, method and number of clusters.

    on_warning: called with each warning about the table, before anything is clustered.

    Raises InvalidData if the table cannot be read, or if no column can be clustered.
    Raises CoterieError: the error of the last method, if none succeeds.
    """
    draft = draft_options(path, options)
    preparation = build_imputation(draft.schema, "mean")
    source = open_clusterable(path, replace(draft.options, preparation=preparation))
    warnings, outliers = list(source.report.warnings), source.report.outliers
    if on_warning is not None:
        for warning in (*warnings, *outliers, *([_CODES_REMEDY] if outliers else [])):
            on_warning(warning)
    if outliers:
        warnings.append(_CODES_CAUTION)
    fields = AgreedFields(dictionary=[draft.schema.used], preparation=[preparation])
    X = matrix(source)
    rows = np.sort(np.random.default_rng(_SEED).permutation(len(X))[:_MOST_ROWS])
    sample = matrix(keep_rows(source, rows.astype(np.int64)))
    params, evaluation, session = _choose_method(sample, source, fields)
    protocol, suggestion = catalogue.find_protocol_name(params), session
    if len(sample) < len(X):
        values = _param_values(protocol, session.n_clusters)
        params, evaluation = catalogue.parse_params(protocol, values), None
        session = play_session(
            split_table(X, source.columns, fields, _LAYOUT, _SEED), params, _SEED
        )
    return Trial(
        file=path.name,
        draft=draft,
        source=source,
        protocol=protocol,
        session=session,
        suggested=_describe_suggestion(protocol, suggestion, len(sample)),
        report=_build_report(
            path.stem,
            draft,
            source,
            session,
            params,
            evaluation,
            preparation,
            warnings,
        ),
    )


def _param_values(protocol: str, n_clusters: Any) -> dict[str, Any]:
    return {**catalogue.protocol(protocol).in_simulations, "n_clusters": n_clusters}


def _choose_method(
    X: FloatArray, source: Table, fields: AgreedFields
) -> tuple[Params, Evaluation | None, SimulatedSession]:
    """Return the first protocol and range of clusters that work, with their session."""
    split = split_table(X, source.columns, fields, _LAYOUT, _SEED)
    choices = [(protocol, numbers) for protocol in _PROTOCOLS for numbers in _RANGES]
    for protocol, numbers in choices:
        values, evaluation = parse_runs(_param_values(protocol, numbers), None)
        params = catalogue.parse_params(protocol, values)
        try:
            return (
                params,
                evaluation,
                play_session(split, params, _SEED, evaluation=evaluation),
            )
        except CoterieError:
            if (protocol, numbers) == choices[-1]:
                raise
    raise AssertionError("the last choice returns or raises")


def _describe_suggestion(protocol: str, session: SimulatedSession, n_rows: int) -> str:
    numbers = [run.n_clusters for run in session.runs if run.n_clusters is not None]
    title = catalogue.protocol(protocol).title
    return (
        f"Suggested: {protocol} ({title}) with {session.n_clusters} clusters, of "
        f"{min(numbers)} to {max(numbers)} tried on {n_rows:,} rows."
    )


def _build_report(
    title: str,
    draft: FirstDraft,
    source: Table,
    session: SimulatedSession,
    params: Params,
    evaluation: Evaluation | None,
    preparation: Preparation,
    warnings: Sequence[str],
) -> RunReport:
    request = session_terms.build_request(
        params,
        _LAYOUT,
        about={"title": title},
        seed=0,
        evaluation=evaluation,
        dictionary=[draft.schema.used],
        preparation=[preparation],
    )
    text = session_terms.draw_up_terms(SIMULATION, request)
    terms, labels = read_terms(text), session.whole.labels
    X = matrix(source)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    rows = MatrixSource(filled, source.columns)
    sizes = tuple(np.bincount(labels[labels >= 0]).tolist())
    result_parts = {
        **result_details(terms, session.results[0]),
        "sizes": sizes,
        "own_sizes": sizes,
        "without": int(np.count_nonzero(labels < 0)),
        "odd": (*warnings, *session.warnings),
        "profiles": (own_profile(draft.schema.used, source, labels, 0, _MIN_CLUSTER),),
    }
    return RunReport(
        session=terms.session,
        title=title,
        protocol=terms.protocol.name,
        sheet=sheet_of(text, terms, {}),
        slot=_LAYOUT.names[0],
        complete=True,
        n_rows=source.n_rows,
        points=project_rows(rows, labels, limit=_MOST_POINTS),
        versions=versions_of(terms),
        **result_parts,
    )
