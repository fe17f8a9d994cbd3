"""Which methods fit, as a table of methods and questions, and what a session takes.

The facts are the protocols' own: ``methods``, ``check``, ``sizes`` and ``risks_of``.
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
from clustering_protocols.contract.disclosures import exposures, opens_rows
from clustering_protocols.contract.parameters import asked
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.session_terms import runs_of
from clustering_protocols.terms.agreements import Agreement, Member
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Identities, Layout, Slot, read_terms

USUAL_COLUMNS: Final = 10
"""Columns of all parties together, where nobody says how many."""

_USUAL_UPDATES: Final = 10
"""That most runs take; see docs/evidence/fidelity.csv."""

LARGE_UPLOAD: Final = 1e9
LARGE_MEMORY: Final = 4e9
"""Bytes from which a session is worth a warning."""

COLUMNS: Final = (
    "method",
    "clusters",
    "analyst",
    "with a party",
    "rounds",
    "agreement",
)
"""Titles of the table; :func:`cells` fills a row of it."""

_LEGEND: Final = (
    "analyst, with a party: what the analyst can work out beside the result, alone and "
    "together with one party. agreement: with clustering the pooled rows, on the worst "
    "and the best public data set; 1 is equal."
)

_MIXED: Final = (
    "Numbers, yes or no and levels go together where a dictionary describes them: numbers "
    "count in standard deviations, and two answers, or two levels, are 1 apart."
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question in plain words, and what each answer to it means.

    answers: by value; empty where the answer is a number.
    default: None where an answer is needed.
    """

    text: str
    answers: Mapping[str, str]
    default: str | None = None


QUESTIONS: Final[Mapping[str, Question]] = {
    "partitioning": Question(
        "Do the parties hold the same people?",
        {
            "horizontal": "other people at each party",
            "vertical": "the same people, other variables",
            "mixed": "both",
        },
    ),
    "parties": Question("How many parties?", {}),
    "distances": Question(
        "May the analyst work out how rows lie to each other (distances)?",
        {"no": "no", "yes": "yes"},
        "no",
    ),
    "data": Question(
        "What is the data?",
        {
            "numeric": "measurements, with yes or no and levels",
            "counts": "counts of objects and items",
            "categories": "levels, such as answers to a questionnaire",
        },
        "numeric",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Answers to the questions.

    distances: whether the analyst may work out distances between rows. If not, neither
        it nor it and one party together may work out more than sums.
    rows: of all parties together, about; None if nobody knows.
    """

    partitioning: Partitioning
    parties: int
    distances: bool = False
    data: Kind = "numeric"
    n_clusters: int = 3
    rows: int | None = None

    @property
    def legend(self) -> str:
        """Return what the columns of the table mean, and how kinds of data go together."""
        return f"{_LEGEND} {_MIXED}" if self.data == "numeric" else _LEGEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A method that fits, with the parameters and the command to begin with.

    warnings: what is large about a session of so many rows, and what may spoil it.
    """

    protocol: str
    way: Method
    params: Mapping[str, Any]
    layout: Layout
    warnings: Sequence[str]
    command: str

    @property
    def name(self) -> str:
        """Return protocol and algorithm."""
        return f"{self.protocol}, {self.way.name}"

    @property
    def risks(self) -> tuple[str, ...]:
        """Return the risk codes of a session with these parameters."""
        params = catalogue.parse_params(self.protocol, self.params)
        return tuple(catalogue.risks_of(params, self.layout, Identities()))

    @property
    def shown(self) -> frozenset[Disclosure]:
        """Return what a session with these parameters shows of rows."""
        return _shown(self.protocol, self.way, self.layout)

    @property
    def exposures(self) -> tuple[Exposure, Exposure]:
        """Return what the analyst can work out beside the result: alone, with a party."""
        return exposures(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Methods that fit, ordered by privacy, then accuracy, then number of rounds.

    with_distances: methods that would fit as well if the analyst might see distances.
    others: reasons by protocol for those that fit neither way.
    """

    fits: Sequence[Fit]
    with_distances: Sequence[Fit]
    others: Mapping[str, str]


def advise(situation: Situation) -> Advice:
    """Return which methods fit a situation, and why the others do not.

    Raises InvalidParameters if no layout has so many parties.
    """
    fits, _ = _fitting(situation)
    wider, others = _fitting(replace(situation, distances=True))
    names = {fit.name for fit in fits}
    return Advice(
        fits=fits,
        with_distances=[fit for fit in wider if fit.name not in names],
        others=others,
    )


def _fitting(situation: Situation) -> tuple[list[Fit], dict[str, str]]:
    layout = layout_of(situation.partitioning, situation.parties)
    fits: list[Fit] = []
    others: dict[str, str] = {}
    for name, known in catalogue.catalogue().items():
        reasons = []
        for way in known.methods:
            reason = _reason_against(situation, layout, name, way)
            if reason:
                reasons.append(
                    (situation.partitioning not in way.partitionings, reason)
                )
            else:
                fits.append(_fit(situation, layout, name, way))
        if known.methods and len(reasons) == len(known.methods):
            others[name] = min(reasons)[1]
    split = situation.partitioning

    def order(fit: Fit) -> tuple[Any, ...]:
        way = fit.way
        least, _ = way.agreement.get(split, (0.0, 0.0))
        opened = opens_rows(fit.shown, Reader.GROUP, Reader.ALL)
        return (opened, *fit.exposures, -least, way.rounds, fit.protocol)

    return sorted(fits, key=order), others


def _reason_against(
    situation: Situation, layout: Layout, name: str, way: Method
) -> str:
    """Return why a method does not fit; nothing if it does."""
    protocol = catalogue.protocol(name)
    if situation.partitioning not in way.partitionings:
        return f"It takes {' or '.join(protocol.partitionings)} partitioning."
    if situation.data != way.data:
        return f"It takes {QUESTIONS['data'].answers[way.data]}."
    seen = max(exposures(_shown(name, way, layout)))
    if seen >= Exposure.GEOMETRY and not situation.distances:
        return f"The analyst, or it and one party, can work out {seen.sentence}."
    try:
        params = catalogue.parse_params(name, way.parameters(situation.n_clusters))
        protocol.check(params, layout)
        check_sizes(params, layout, situation.rows, USUAL_COLUMNS)
    except (InvalidParameters, ProtocolFailed) as refused:
        return refused.detail
    return ""


def _shown(name: str, way: Method, layout: Layout) -> frozenset[Disclosure]:
    params = catalogue.parse_params(name, way.parameters(3))
    return catalogue.protocol(name).shows(params, layout)


def _fit(situation: Situation, layout: Layout, name: str, way: Method) -> Fit:
    values = way.parameters(situation.n_clusters)
    params = catalogue.parse_params(name, values)
    values |= params.model_dump(mode="json", include={*asked(type(params))})
    return Fit(
        protocol=name,
        way=way,
        params=values,
        layout=layout,
        warnings=size_warnings(params, layout, situation.rows, USUAL_COLUMNS),
        command=_command(name, values, layout),
    )


def cells(protocol: str, way: Method, partitioning: Partitioning) -> tuple[str, ...]:
    """Return the row of a method in the table of :data:`COLUMNS`."""
    least, most = way.agreement.get(partitioning, (0.0, 0.0))
    alone, with_one = exposures(_shown(protocol, way, layout_of(partitioning, 3)))
    measured = f"{least:.2f}" if least == most else f"{least:.2f} to {most:.2f}"
    return (
        f"{protocol}, {way.name}",
        " or ".join(way.shapes),
        alone.word,
        with_one.word,
        way.rounds.word,
        measured if most else "not measured",
    )


def layout_of(partitioning: Partitioning, parties: int) -> Layout:
    """Return a layout of so many parties: mixed ones in two column groups."""
    if partitioning == "horizontal":
        return Layout.lattice(parties, 1)
    if partitioning == "vertical":
        return Layout.lattice(1, parties)
    if parties < 3:
        raise InvalidParameters("Rows and columns both split take three parties.")
    places = [divmod(number, 2) for number in range(parties)]
    slots = [
        Slot(name=f"r{row + 1}c{column + 1}", row=row, column=column)
        for row, column in places
    ]
    return Layout(slots=tuple(slots))


def _command(protocol: str, params: Mapping[str, Any], layout: Layout) -> str:
    """Return the command that opens a session."""
    words = ["coterie", "session", "create", "my-session", "--protocol", protocol]
    for name, value in format_params(params):
        option = ["--param", f"{name}={value}"]
        words += ["--clusters", value] if name == "n_clusters" else option
    is_mixed = layout.n_row_groups > 1 and layout.n_column_groups > 1
    for slot in layout.slots:
        place = f"={slot.row + 1},{slot.column + 1}" if is_mixed else ""
        words += ["--party", f"{slot.name}{place}"]
    if layout.n_row_groups == 1:
        words.append("--same-people")
    return shlex.join(words)


def format_params(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each parameter, as options and forms take them."""
    for name, value in params.items():
        yield name, value if isinstance(value, str) else json.dumps(value)


# Sizes


def check_sizes(
    params: Params,
    layout: Layout,
    rows: int | None,
    columns: int,
    evaluation: Evaluation | None = None,
) -> None:
    """Refuse sizes that the session would refuse; without rows all pass.

    Raises InvalidParameters: above the most rows that the parameters allow, with what
        lifts it.
    Raises ProtocolFailed: with what the session would end with.
    """
    if rows is None:
        return
    sizes = catalogue.protocol_of(params).sizes()
    most = sizes.most_rows(params, columns)
    if most is not None and rows > most:
        raise InvalidParameters(
            f"With these parameters {catalogue.name_of(params)} ends at {most:,} rows. "
            f"{sizes.beyond(params)}"
        )
    widths = widths_of(layout, columns)
    _check_planned(params, layout, rows=rows, widths=widths, evaluation=evaluation)


def widths_of(layout: Layout, columns: int) -> list[int]:
    """Return the columns of each group; of the usual number, no group has fewer."""
    groups = layout.n_column_groups
    if columns == USUAL_COLUMNS:
        return [-(-columns // groups)] * groups
    return _spread(columns, groups)


def size_warnings(
    params: Params,
    layout: Layout,
    rows: int | None,
    columns: int,
    evaluation: Evaluation | None = None,
) -> list[str]:
    """Return what is large about a session, and what of it may spoil the result."""
    warnings = list(
        result_warnings.of_session(params, layout, widths_of(layout, columns))
    )
    if rows is None:
        return warnings
    sizes = catalogue.protocol_of(params).sizes()
    extent = Extent(rows=rows, features=columns, layout=layout)
    upload = sizes.upload_bytes(params, extent)
    memory = sizes.memory_bytes(params, extent)
    if upload >= LARGE_UPLOAD:
        warnings.append(
            f"A party sends up to {upload / 1e9:,.1f} GB, and the analyst keeps that of "
            "every party until the session is over."
        )
    if memory >= LARGE_MEMORY:
        warnings.append(f"The analyst takes up to {memory / 1e9:,.1f} GB of memory.")
    own = rows // len(layout.slots)
    if evaluation is not None:
        return warnings + _numbers_that_fit(params, layout, own, evaluation)
    updates = sizes.updates_that_fit([params], layout, own)
    most = getattr(params, "max_iter", 0)
    if updates is not None and updates < most:
        warnings.append(
            f"With {own} rows a party, its own audit (sums_limit) may stop a session from "
            f"update {updates + 1} of up to {most} on."
        )
    return warnings


def _numbers_that_fit(
    params: Params, layout: Layout, own: int, evaluation: Evaluation
) -> list[str]:
    """Return which numbers of clusters leave room for the updates that a run takes."""
    runs = runs_of(params, evaluation)
    sizes = catalogue.protocol_of(params).sizes()
    fit = []
    for n, number in enumerate(evaluation.n_clusters, 1):
        updates = sizes.updates_that_fit(runs[:n], layout, own)
        if updates is None or updates >= _USUAL_UPDATES:
            fit.append(str(number))
    if len(fit) == len(runs):
        return []
    some = f"n_clusters {', '.join(fit)}, {len(fit)}" if fit else "none"
    return [
        (
            f"With {own} rows a party, its own audit (sums_limit) has room for "
            f"{_USUAL_UPDATES} updates of {some} of the {len(runs)} numbers of clusters, and "
            "may stop the session at others: `coterie party check --rehearse` says how many fit a "
            "table."
        )
    ]


def describe_runs(params: Params, layout: Layout, runs: Evaluation) -> str:
    """Return what several runs cost, before the session opens, as a sentence."""
    many = len(runs.n_clusters)
    stages = catalogue.protocol_of(params).stages(params, layout)
    if any(stage.each_run for stage in stages):
        return (
            f"{many} runs, one after the other: about {many} times the rounds, bytes and "
            "time of one."
        )
    return f"{many} runs: {many} times the analyst's work, but rounds and bytes of one."


def _check_planned(
    params: Params,
    layout: Layout,
    *,
    rows: int,
    widths: Sequence[int],
    evaluation: Evaluation | None = None,
) -> None:
    """Refuse sizes that the protocol would refuse once all parties have joined.

    rows: of all parties together, spread evenly over the row groups.
    widths: columns of each column group.

    Raises ProtocolFailed, InvalidParameters: with what a session of these sizes would
        end with.
    """
    name = catalogue.name_of(params)
    text = session_terms.draw_up(
        "planned",
        session_terms.build_request(params, layout, evaluation=evaluation, seed=0),
        simulated=True,
    )
    heights = _spread(rows, layout.n_row_groups)
    planned: Any = Member.model_construct  # nobody signs a plan
    roster = tuple(
        planned(
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
        runs=session_terms.runs_of(params, evaluation),
    )
    catalogue.protocol(name).check_roster(session)


def _spread(total: int, groups: int) -> list[int]:
    """Return a number in so many parts that differ by at most one."""
    each, more = divmod(total, groups)
    return [each + (group < more) for group in range(groups)]
