"""Which protocols fit, and why the others do not.

The facts are the protocols' own (:mod:`clustering_protocols.common.suitability`,
``check``, ``risks_of``, ``learns``), and what was measured
(:mod:`party_sdk.advice.evidence`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from clustering_protocols import catalogue, result_warnings
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.suitability import (
    Exposure,
    Kind,
    Method,
    Partitioning,
    RoundBudget,
    Shape,
)
from clustering_protocols.contract import Params
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.session_plan import check_planned, spread
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.risks import Risk
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Identities, Layout, Slot
from party_sdk.advice import sizing
from party_sdk.advice.advice_form import ANY
from party_sdk.advice.evidence import Figure, figures

USUAL_COLUMNS: Final = 10
"""Columns of all parties together, where nobody says how many."""
BEST: Final = 3
"""So many ways that fit are shown whole, until somebody asks for all."""
_BETTER: Final = (
    "The analyst can work out less",
    "An analyst who colludes with a party can work out less",
    "The result was nearer to pooled clustering",
    "It takes fewer rounds",
)
"""In the order in which it counts."""
_ALIGNMENT: Final = {"alignment": {"method": "ecdh"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What somebody who looks for a protocol says.

    overlap: whether parties with different features have the very same rows.
    rounds: the most that network and people allow.
    analyst_sees: the most that the analyst may work out.
    collusion: whether the analyst may collude with one of the parties.
    data, shape: none for any.
    rows, columns: of all parties together, about; without rows nothing is said of
        sizes.
    dictionary: of each column group, where there is one: says which fields may show.
    """

    partitioning: Partitioning
    parties: int
    overlap: bool = True
    rounds: RoundBudget = RoundBudget.MANY
    analyst_sees: Exposure = Exposure.GEOMETRY
    collusion: bool = False
    data: Kind | None = None
    shape: Shape | None = None
    n_clusters: int = 3
    rows: int | None = None
    columns: int = USUAL_COLUMNS
    dictionary: tuple[Schema, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A way that fits, with all that follows from it.

    large: what a session of so many rows takes, where that is much.
    cautions: what may spoil its result, or stop it.
    """

    protocol: str
    way: Method
    params: Mapping[str, Any]
    layout: Layout
    risks: Mapping[str, Risk]
    stages: Sequence[str]
    learns: Mapping[str, str]
    figures: Sequence[Figure]
    command: str
    large: Sequence[str] = ()
    cautions: Sequence[str] = ()

    @property
    def lost(self) -> float:
        """Return how far it is from pooled clustering, 0 to 1 on the mean; 1 unknown."""
        if not self.figures:
            return 1.0
        return 1.0 - float(np.mean([each.mean for each in self.figures]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Ways that fit, best first, and reasons by protocol for those that do not."""

    fits: Sequence[Fit]
    others: Mapping[str, Sequence[str]]

    def with_reasons(self) -> Iterator[tuple[Fit, str]]:
        """Yield each way that fits, and why it comes before the next, as a sentence."""
        for fit, following in zip_longest(self.fits, self.fits[1:]):
            yield fit, _compare(fit, following)


def advise(situation: Situation) -> Advice:
    """Return what fits a situation.

    Sorted by privacy; among equals by accuracy against pooled
    clustering, then what needs the fewest rounds.

    Raises InvalidParameters if no layout has so many parties.
    """
    layout = layout_of(situation)
    fits: list[Fit] = []
    others: dict[str, Sequence[str]] = {}
    for name, known in catalogue.catalogue().items():
        judged = [
            (way, _reasons(situation, layout, name, way)) for way in known.methods
        ]
        found = [_fit(situation, layout, name, w) for w, why in judged if not why]
        fits.extend(found)
        if judged and not found:
            others[name] = _shortest(situation, judged)
    return Advice(fits=sorted(fits, key=_order), others=others)


def situation_of(
    answers: Mapping[str, Any],
    n_clusters: int,
    rows: int | None = None,
    columns: int = USUAL_COLUMNS,
    dictionary: Sequence[Schema] = (),
) -> Situation:
    """Return what the answers to all questions of the form say."""
    return Situation(
        partitioning=answers["partitioning"],
        parties=answers["parties"],
        overlap=answers["overlap"] == "full",
        rounds=RoundBudget[answers["rounds"].upper()],
        analyst_sees=Exposure[answers["analyst_sees"].upper()],
        collusion=answers["collusion"] == "yes",
        data=None if answers["data"] == ANY else answers["data"],
        shape=None if answers["shape"] == ANY else answers["shape"],
        n_clusters=n_clusters,
        rows=rows,
        columns=columns,
        dictionary=tuple(dictionary),
    )


def layout_of(situation: Situation) -> Layout:
    """Return a layout of so many parties: mixed ones in two column groups."""
    n = situation.parties
    if situation.partitioning == "horizontal":
        return Layout.lattice(n, 1)
    if situation.partitioning == "vertical":
        return Layout.lattice(1, n)
    if n < 3:
        raise InvalidParameters("Rows and columns both split take three parties.")
    places = [divmod(number, 2) for number in range(n)]
    slots = [
        Slot(name=f"r{row + 1}c{column + 1}", row=row, column=column)
        for row, column in places
    ]
    return Layout(slots=tuple(slots))


def _order(fit: Fit) -> tuple[Any, ...]:
    way = fit.way
    return (
        way.analyst_sees,
        way.exposure_with_one_party,
        fit.lost,
        way.rounds,
        fit.protocol,
    )


def _compare(fit: Fit, following: Fit | None) -> str:
    if following is None:
        return f"The analyst can work out {fit.way.analyst_sees.sentence}."
    name = f"{following.protocol}, {following.way.name}"
    for what, own, other in zip(_BETTER, _order(fit), _order(following), strict=False):
        if own != other:
            return f"{what} than with {name}."
    return f"In all that decides the order it is like {name}."


# Why not


def _shortest(
    situation: Situation, judged: Sequence[tuple[Method, Sequence[str]]]
) -> Sequence[str]:
    """Return the reasons against the way that is nearest to fit."""
    near = [each for each in judged if situation.partitioning in each[0].partitionings]

    def distance(each: tuple[Method, Sequence[str]]) -> tuple[int, bool]:
        way, why = each
        return len(why), situation.shape not in {None, *way.shapes}

    return min(near or judged, key=distance)[1]


def _reasons(situation: Situation, layout: Layout, name: str, way: Method) -> list[str]:
    """Return all reasons against a way, one if it is for data that is split otherwise."""
    if situation.partitioning not in way.partitionings:
        taken = catalogue.protocol(name).partitionings
        return [f"It takes {' or '.join(taken)} partitioning."]
    found = list(_against(situation, way))
    params = _params(situation, name, way)
    if params is None:
        found.append(
            "Its parties must hold the very same rows: cut them to the common ids first."
        )
        params = way.parameters(situation.n_clusters)
    try:
        agreed = catalogue.parse_params(name, params)
        catalogue.protocol(name).check(agreed, layout)
        check_sizes(agreed, layout, situation.rows, situation.columns)
    except (InvalidParameters, ProtocolFailed) as refused:
        found.append(refused.detail)
    return found


def _against(situation: Situation, way: Method) -> Iterator[str]:
    if situation.shape not in {None, *way.shapes}:
        yield f"Its clusters are {' or '.join(way.shapes)} ({way.name})."
    if situation.data not in {None, way.data}:
        yield f"It is for {way.data}."
    if way.rounds > situation.rounds:
        yield f"It takes {way.rounds.word} rounds: {way.rounds.sentence}."
    if way.analyst_sees > situation.analyst_sees:
        yield f"The analyst can work out {way.analyst_sees.sentence}."
    if situation.collusion and way.exposure_with_one_party >= Exposure.ROWS:
        yield (
            "An analyst who colludes with one party can work out "
            f"{way.exposure_with_one_party.sentence}."
        )


def _params(situation: Situation, name: str, way: Method) -> dict[str, Any] | None:
    """Return the parameters of a way; None where it cannot align rows that differ."""
    params = way.parameters(situation.n_clusters)
    if situation.overlap or situation.partitioning == "horizontal":
        return params
    aligns = "alignment" in catalogue.protocol(name).params.model_fields
    return params | _ALIGNMENT if aligns else None


# What fits


def _fit(situation: Situation, layout: Layout, name: str, way: Method) -> Fit:
    known = catalogue.protocol(name)
    given = _params(situation, name, way) or {}
    params = catalogue.parse_params(name, given)
    return Fit(
        protocol=name,
        way=way,
        params=given,
        layout=layout,
        risks=catalogue.risks_of(params, layout, Identities()),
        stages=[stage.name for stage in known.stages(params, layout)],
        learns=known.learns,
        figures=figures(name, way.name, situation.partitioning),
        command=command(name, given, layout),
        large=large(params, layout, situation.rows, situation.columns),
        cautions=[
            *result_warnings.of_session(
                params, layout, widths_of(layout, situation.columns)
            ),
            *describe_audit_limit(params, layout, situation.rows),
            *result_warnings.of_fields(params, layout, situation.dictionary),
        ],
    )


def check_sizes(
    params: Params,
    layout: Layout,
    rows: int | None,
    columns: int,
    evaluation: Evaluation | None = None,
) -> None:
    """Refuse sizes that the session would refuse; without rows nothing is known.

    Raises InvalidParameters: above the most rows that the parameters allow, with what
        lifts it.
    Raises ProtocolFailed: with what the session would end with.
    """
    if rows is None:
        return
    end = sizing.end(params, Extent(rows=rows, features=columns, layout=layout))
    if end:
        raise InvalidParameters(end)
    widths = widths_of(layout, columns)
    check_planned(params, layout, rows=rows, widths=widths, evaluation=evaluation)


def widths_of(layout: Layout, columns: int) -> list[int]:
    """Return the columns of each group; of the usual number, no group has fewer."""
    groups = layout.n_column_groups
    if columns == USUAL_COLUMNS:
        return [-(-columns // groups)] * groups
    return spread(columns, groups)


def large(params: Params, layout: Layout, rows: int | None, columns: int) -> list[str]:
    """Return what is large of a session of so many rows, as sentences."""
    if rows is None:
        return []
    return sizing.warnings(params, Extent(rows=rows, features=columns, layout=layout))


def describe_audit_limit(params: Params, layout: Layout, rows: int | None) -> list[str]:
    """Return from which update parties' audits of their sums may stop a session."""
    if rows is None:
        return []
    own = rows // len(layout.slots)
    known = catalogue.protocol_of(params)
    fits = known.sizes().updates_that_fit([params], layout, own)
    most = getattr(params, "max_iter", 0)
    if fits is None or fits >= most:
        return []
    said = (
        f"With {own} rows a party, its own audit (sums_limit) may stop a session from "
        f"update {fits + 1} of up to {most} on."
    )
    return [said]


def command(protocol: str, params: Mapping[str, Any], layout: Layout) -> str:
    """Return the command that opens a session."""
    words = ["coterie", "session", "create", "my-session", "--protocol", protocol]
    for name, text in format_params(params):
        words += ["--param", f"{name}={text}"]
    if layout.regular:
        words += ["--row-groups", str(layout.n_row_groups)]
        words += ["--column-groups", str(layout.n_column_groups)]
        return shlex.join(words)
    for slot in layout.slots:
        words += ["--slot", f"{slot.name}={slot.row + 1},{slot.column + 1}"]
    return shlex.join(words)


def format_params(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each parameter; a dot reaches into a part."""
    for name, value in _flat(params):
        yield name, value if isinstance(value, str) else json.dumps(value)


def _flat(params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{part}", each) for part, each in _flat(value))
        else:
            yield name, value
