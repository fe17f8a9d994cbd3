"""Recommend clustering methods, and predict the size and warnings of a planned session.

All facts are the protocols' own: ``methods``, ``check_params``, ``sizing``, ``risks_of``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from clustering_protocols import catalogue, result_warnings, session_terms
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.suitability import Exposure, Kind, Method, Partitioning
from clustering_protocols.contract import Disclosure, Params, Reader, SessionContext
from clustering_protocols.contract.disclosures import analyst_exposures, discloses_rows
from clustering_protocols.contract.parameters import required_choices
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.session_terms import params_per_run
from clustering_protocols.terms.agreements import Agreement, Member
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Identities, Layout, Slot, read_terms

_TYPICAL_COLUMNS: Final = 10
"""The assumed number of columns of all parties together, if it is unknown."""

_N_CLUSTERS: Final = 3
"""The number of clusters in a suggested command."""

_TYPICAL_UPDATES: Final = 10
"""The number of updates within which most runs end; see docs/evidence/fidelity.csv."""

LARGE_UPLOAD: Final = 1e9
LARGE_MEMORY: Final = 4e9
"""Sizes in bytes from which a planned session gets a warning."""

COLUMNS: Final = (
    "method",
    "clusters",
    "analyst",
    "with a party",
    "rounds",
    "agreement",
)
"""Column titles of the comparison table; :func:`comparison_row` returns a row."""

_LEGEND: Final = (
    "analyst, with a party: what the analyst can work out beyond the result, alone and "
    "together with one party. agreement: with a clustering of the pooled rows, on the "
    "worst and the best public data set; 1 is equal."
)

_MIXED: Final = (
    "With a dictionary, numbers, yes-or-no fields and categories are clustered "
    "together: numbers in standard deviations; two answers or two levels are 1 apart."
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a planned session, in plain words.

    answers: the meaning of each possible answer; empty if the answer is a number.
    default: the answer that is used if none is given; None if an answer is required.
    """

    text: str
    answers: Mapping[str, str]
    default: str | None = None


QUESTIONS: Final[Mapping[str, Question]] = {
    "partitioning": Question(
        "Do the parties hold the same people?",
        {
            "horizontal": "different people at each party",
            "vertical": "the same people, different variables",
            "mixed": "both",
        },
    ),
    "parties": Question("How many parties?", {}),
    "distances": Question(
        "May the analyst work out how rows lie relative to each other (distances)?",
        {"no": "no", "yes": "yes"},
        "no",
    ),
    "data": Question(
        "What are the data?",
        {
            "numeric": "measurements, which may be mixed with yes-or-no fields and categories",
            "counts": "counts of objects and items",
            "categories": "categories, such as answers to a questionnaire",
        },
        "numeric",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The answers to the questions about a planned session.

    distances: whether the analyst may be able to compute distances between rows. If
        not, the analyst may learn only sums, both alone and together with one party.
    rows: the approximate number of rows of all parties together; None if unknown.
    """

    partitioning: Partitioning
    parties: int
    distances: bool = False
    data: Kind = "numeric"
    rows: int | None = None

    @property
    def legend(self) -> str:
        """Return the legend of the comparison table."""
        return f"{_LEGEND} {_MIXED}" if self.data == "numeric" else _LEGEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A method that fits a situation, with parameters and a command to begin with.

    warnings: what :func:`size_warnings` returns for this method.
    """

    protocol: str
    method: Method
    params: Mapping[str, Any]
    layout: Layout
    warnings: Sequence[str]
    command: str

    @property
    def name(self) -> str:
        """Return the names of the protocol and of the algorithm, joined by a comma."""
        return f"{self.protocol}, {self.method.name}"

    @property
    def risks(self) -> tuple[str, ...]:
        """Return the risk codes of a session with these parameters."""
        params = catalogue.parse_params(self.protocol, self.params)
        return tuple(catalogue.find_session_risks(params, self.layout, Identities()))

    @property
    def disclosures(self) -> frozenset[Disclosure]:
        """Return what a session with these parameters discloses about rows, and to whom."""
        return _disclosures_of(self.protocol, self.method, self.layout)

    @property
    def exposures(self) -> tuple[Exposure, Exposure]:
        """Return what the analyst can infer on its own, and together with one party."""
        return analyst_exposures(self.disclosures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The methods that fit, ordered by privacy, then accuracy, then number of rounds.

    with_distances: methods that would also fit if the analyst could see distances.
    unsuitable: for each protocol that does not fit even then, the reason.
    """

    fits: Sequence[Fit]
    with_distances: Sequence[Fit]
    unsuitable: Mapping[str, str]


def advise(situation: Situation) -> Advice:
    """Return the methods that fit a situation, and the reasons why the others do not.

    Raises InvalidParameters if no layout has this number of parties.
    """
    fits, _ = _find_fits(situation)
    fits_with_distances, unsuitable = _find_fits(replace(situation, distances=True))
    names = {fit.name for fit in fits}
    return Advice(
        fits=fits,
        with_distances=[fit for fit in fits_with_distances if fit.name not in names],
        unsuitable=unsuitable,
    )


def _find_fits(situation: Situation) -> tuple[list[Fit], dict[str, str]]:
    layout = layout_of(situation.partitioning, situation.parties)
    fits: list[Fit] = []
    unsuitable: dict[str, str] = {}
    for name, protocol in catalogue.catalogue().items():
        reasons = []
        for method in protocol.methods:
            fit = _fit_method(situation, layout, name, method)
            if isinstance(fit, Fit):
                fits.append(fit)
            else:
                reasons.append(
                    (situation.partitioning not in method.partitionings, fit)
                )
        if protocol.methods and len(reasons) == len(protocol.methods):
            unsuitable[name] = min(reasons)[1]
    partitioning = situation.partitioning

    def sort_key(fit: Fit) -> tuple[Any, ...]:
        method = fit.method
        worst, _ = method.agreement.get(partitioning, (0.0, 0.0))
        opened = discloses_rows(fit.disclosures, Reader.GROUP, Reader.ALL)
        return (opened, *fit.exposures, -worst, method.rounds, fit.protocol)

    return sorted(fits, key=sort_key), unsuitable


def _fit_method(
    situation: Situation, layout: Layout, name: str, method: Method
) -> Fit | str:
    """Return the method with suggested parameters, or the reason why it does not fit."""
    protocol = catalogue.protocol(name)
    if situation.partitioning not in method.partitionings:
        return f"It requires {' or '.join(protocol.partitionings)} partitioning."
    if situation.data != method.data:
        return f"It is for {QUESTIONS['data'].answers[method.data]}."
    exposure = max(analyst_exposures(_disclosures_of(name, method, layout)))
    if exposure >= Exposure.GEOMETRY and not situation.distances:
        return f"The analyst, alone or with a party, can work out {exposure.sentence}."
    values = method.recommended_params(_N_CLUSTERS)
    try:
        params = catalogue.parse_params(name, values)
        protocol.check_params(params, layout)
        check_sizes(params, layout, situation.rows, None)
    except (InvalidParameters, ProtocolFailed) as error:
        return error.detail
    values |= params.model_dump(mode="json", include={*required_choices(type(params))})
    return Fit(
        protocol=name,
        method=method,
        params=values,
        layout=layout,
        warnings=size_warnings(params, layout, situation.rows, None),
        command=_suggested_command(name, values, layout),
    )


def _disclosures_of(name: str, method: Method, layout: Layout) -> frozenset[Disclosure]:
    params = catalogue.parse_params(name, method.recommended_params(_N_CLUSTERS))
    return catalogue.protocol(name).disclosures(params, layout)


def comparison_row(
    protocol: str, method: Method, partitioning: Partitioning
) -> tuple[str, ...]:
    """Return the cells of a method in the comparison table, titled by :data:`COLUMNS`."""
    worst, best = method.agreement.get(partitioning, (0.0, 0.0))
    alone, with_party = analyst_exposures(
        _disclosures_of(protocol, method, layout_of(partitioning, 3))
    )
    agreement = f"{worst:.2f}" if worst == best else f"{worst:.2f} to {best:.2f}"
    return (
        f"{protocol}, {method.name}",
        " or ".join(method.shapes),
        alone.word,
        with_party.word,
        method.rounds.word,
        agreement if best else "not measured",
    )


def layout_of(partitioning: Partitioning, parties: int) -> Layout:
    """Return a layout for this number of parties; a mixed layout has two column groups."""
    if partitioning == "horizontal":
        return Layout.lattice(parties, 1)
    if partitioning == "vertical":
        return Layout.lattice(1, parties)
    if parties < 3:
        raise InvalidParameters("Splitting rows and columns requires three parties.")
    slots = (
        Slot(name=f"r{row + 1}c{column + 1}", row=row, column=column)
        for row, column in (divmod(number, 2) for number in range(parties))
    )
    return Layout(slots=tuple(slots))


def _suggested_command(protocol: str, params: Mapping[str, Any], layout: Layout) -> str:
    words = ["coterie", "session", "create", "my-session", "--protocol", protocol]
    for name, value in format_params(params):
        option = ["--param", f"{name}={value}"]
        words += ["--clusters", value] if name == "n_clusters" else option
    is_mixed = layout.n_row_groups > 1 and layout.n_column_groups > 1
    for slot in layout.slots:
        position = f"={slot.row + 1},{slot.column + 1}" if is_mixed else ""
        words += ["--party", f"{slot.name}{position}"]
    if layout.n_row_groups == 1:
        words.append("--same-people")
    return shlex.join(words)


def format_params(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each parameter, as options and forms take them."""
    for name, value in params.items():
        yield name, value if isinstance(value, str) else json.dumps(value)


# Sizes


def check_sizes(
    params: Params,
    layout: Layout,
    rows: int | None,
    columns: int | None,
    evaluation: Evaluation | None = None,
) -> None:
    """Raise if the session would refuse these sizes; without ``rows``, check nothing.

    columns: the number of columns of all parties together; None if it is unknown.

    Raises InvalidParameters, with advice on how to raise the limit, if there are too
    many rows. Raises ProtocolFailed with the error with which the session would end.
    """
    if rows is None:
        return
    sizes = catalogue.find_protocol(params).sizing()
    max_rows = sizes.most_rows(params, columns or _TYPICAL_COLUMNS)
    if max_rows is not None and rows > max_rows:
        raise InvalidParameters(
            f"With these parameters {catalogue.find_protocol_name(params)} takes at "
            f"most {max_rows:,} rows. {sizes.advice_beyond_limit(params)}"
        )
    text = session_terms.draw_up_terms(
        "planned",
        session_terms.build_request(params, layout, evaluation=evaluation, seed=0),
    )
    heights = _split_evenly(rows, layout.n_row_groups)
    widths = columns_per_group(layout, columns)
    build_member: Any = Member.model_construct  # no keys or signatures yet
    roster = tuple(
        build_member(
            slot=slot.name,
            n_rows=max(1, heights[slot.row]),
            n_columns=max(1, widths[slot.column]),
        )
        for slot in layout.slots
    )
    session: SessionContext[Params] = SessionContext(
        agreement=Agreement.model_construct(terms=text.decode(), roster=roster),
        agreement_digest="",
        terms=read_terms(text),
        params=params,
        runs=session_terms.params_per_run(params, evaluation),
    )
    catalogue.find_protocol(params).check_roster(session)


def columns_per_group(layout: Layout, columns: int | None) -> list[int]:
    """Return the number of columns per column group; None assumes equal numbers."""
    groups = layout.n_column_groups
    if columns is None:
        return [-(-_TYPICAL_COLUMNS // groups)] * groups
    return _split_evenly(columns, groups)


def size_warnings(
    params: Params,
    layout: Layout,
    rows: int | None,
    columns: int | None,
    evaluation: Evaluation | None = None,
) -> list[str]:
    """Return warnings about a planned session's size and the quality of its result.

    columns: the number of columns of all parties together; None if it is unknown.
    """
    warnings = list(
        result_warnings.find_session_warnings(
            params, layout, columns_per_group(layout, columns)
        )
    )
    if rows is None:
        return warnings
    sizes = catalogue.find_protocol(params).sizing()
    extent = Extent(rows=rows, features=columns or _TYPICAL_COLUMNS, layout=layout)
    upload = sizes.upload_bytes(params, extent)
    memory = sizes.memory_bytes(params, extent)
    if upload >= LARGE_UPLOAD:
        warnings.append(
            f"A party sends up to {upload / 1e9:,.1f} GB, and the analyst keeps the "
            "uploads of all parties until the session is over."
        )
    if memory >= LARGE_MEMORY:
        warnings.append(f"The analyst takes up to {memory / 1e9:,.1f} GB of memory.")
    own_rows = rows // len(layout.slots)
    if evaluation is not None:
        return warnings + _update_warnings(params, layout, own_rows, evaluation)
    updates = sizes.updates_that_fit([params], layout, own_rows)
    max_iter = getattr(params, "max_iter", 0)
    if updates is not None and updates < max_iter:
        warnings.append(
            f"With {own_rows} rows per party, a party's audit (sums_limit) may stop a "
            f"session from update {updates + 1} of up to {max_iter} on."
        )
    return warnings


def _update_warnings(
    params: Params, layout: Layout, own_rows: int, evaluation: Evaluation
) -> list[str]:
    """Return at most one warning: ``sums_limit`` allows too few updates of a run."""
    runs = params_per_run(params, evaluation)
    sizes = catalogue.find_protocol(params).sizing()
    fitting = []
    for n, number in enumerate(evaluation.n_clusters, 1):
        updates = sizes.updates_that_fit(runs[:n], layout, own_rows)
        if updates is None or updates >= _TYPICAL_UPDATES:
            fitting.append(str(number))
    if len(fitting) == len(runs):
        return []
    share = f"n_clusters {', '.join(fitting)}, {len(fitting)}" if fitting else "none"
    warning = (
        f"With {own_rows} rows per party, a party's audit (sums_limit) allows "
        f"{_TYPICAL_UPDATES} updates of {share} of the {len(runs)} numbers of clusters, and "
        "may stop the session at others: `coterie party check --rehearse` says how many fit a "
        "table."
    )
    return [warning]


def describe_cost_of_runs(params: Params, layout: Layout, runs: Evaluation) -> str:
    """Return a sentence that compares the cost of several runs with the cost of one."""
    n_runs = len(runs.n_clusters)
    stages = catalogue.find_protocol(params).stages(params, layout)
    if any(stage.each_run for stage in stages):
        return (
            f"{n_runs} runs, one after the other: about {n_runs} times the rounds, bytes and "
            "time of one."
        )
    return f"{n_runs} runs: {n_runs} times the analyst's work, but rounds and bytes of one."


def _split_evenly(total: int, groups: int) -> list[int]:
    size, n_larger = divmod(total, groups)
    return [size + (group < n_larger) for group in range(groups)]
