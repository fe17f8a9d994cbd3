"""Cases: a method on a table that is split some way, for several numbers of clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clustering_protocols import catalogue as registry, session_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.simulation.agreement import SIMULATION
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.risks import sentences_of
from clustering_protocols.terms.terms import read_terms
from party_sdk.cli.lab.trial import TrialTable
from party_sdk.coordinator.option_parsing import read_runs, read_values
from party_sdk.lab import (
    Lattice,
    SimulatedSession,
    deal,
    fields_of_groups,
    play,
    regular,
)

EACH: Final = 2
"""How many columns parties have by default: some methods refuse a party with one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One session to simulate.

    file: the name of its table.
    risks: the codes that the session would bring, with a sentence each.
    of_runs: those that it brings because it has several runs.
    """

    file: str
    table: TrialTable = field(repr=False)
    protocol: str
    params: Params
    evaluation: Evaluation | None
    lattice: Lattice
    risks: Mapping[str, str]
    of_runs: tuple[str, ...]

    @property
    def layout(self) -> str:
        """Return the layout as it is written."""
        return format_lattice(self.lattice)

    def play(self, seed: int, *, manifest: bool = False) -> SimulatedSession:
        """Play the session, over the table dealt out by the seed.

        manifest: as for :func:`~party_sdk.lab.simulate`.
        """
        table = self.table
        layout = regular(self.lattice)
        dealt = deal(table.X, table.columns, table.agreed_fields, layout, seed)
        return play(
            dealt, self.params, seed, evaluation=self.evaluation, manifest=manifest
        )

    @property
    def numbers(self) -> list[int | None]:
        """Return the number of clusters of each run."""
        runs = session_terms.runs_of(self.params, self.evaluation)
        return [getattr(run, "n_clusters", None) for run in runs]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A method that does not fit, and why."""

    file: str
    protocol: str
    layout: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compared.

    protocols: names; none for all that people are advised to use.
    lattices: sequence of (int, int); none for :func:`usual_lattices`.
    n_clusters: as :func:`~party_sdk.coordinator.option_parsing.read_runs` takes it.
    params: NAME=VALUE for all, PROTOCOL.NAME=VALUE for one.
    """

    protocols: Sequence[str]
    lattices: Sequence[Lattice]
    n_clusters: Any
    choose: str | None
    params: tuple[str, ...]
    seed: int


def format_lattice(lattice: Lattice) -> str:
    """Return a layout as it is written, such as 3x1."""
    return f"{lattice[0]}x{lattice[1]}"


def usual_lattices(n_columns: int) -> list[Lattice]:
    """Return rows split, columns split, both: as far as each party has two columns."""
    columns = [(1, groups) for groups in (3, 2) if n_columns >= EACH * groups][:1]
    return [(3, 1), *columns, *([(2, 2)] if columns else [])]


# Before anything runs


def plan(
    tables: Mapping[str, TrialTable], wish: Wish
) -> tuple[list[Case], list[LeftOut]]:
    """Return the cases, and what does not fit.

    Raises InvalidParameters if a protocol is not known, or nothing fits.
    """
    values = _values(wish)
    cases: list[Case] = []
    others: list[LeftOut] = []
    for file, table in tables.items():
        for protocol, given in values.items():
            for lattice in wish.lattices or usual_lattices(len(table.columns)):
                try:
                    _check_kind(table, protocol)
                    case = case_of(
                        file,
                        table,
                        protocol,
                        given,
                        lattice,
                        choose=wish.choose,
                        seed=wish.seed,
                    )
                except InvalidParameters as refused:
                    others.append(
                        LeftOut(
                            file=file,
                            protocol=protocol,
                            layout=format_lattice(lattice),
                            reason=refused.detail,
                        )
                    )
                else:
                    cases.append(case)
    if not cases:
        said = " ".join(f"{e.protocol}, {e.layout}: {e.reason}" for e in others)
        raise InvalidParameters(f"There is nothing to compare. {said}")
    return cases, others


def _values(wish: Wish) -> dict[str, dict[str, Any]]:
    """Return the values of parameters of each protocol that is compared."""
    catalogue = registry.catalogue()
    names = wish.protocols or [n for n, known in catalogue.items() if known.methods]
    for name in names:
        registry.protocol(name)  # which names the known ones
    texts: dict[str, list[str]] = {name: [] for name in names}
    for text in wish.params:
        first, dot, rest = text.partition(".")
        if not dot or "=" in first or first not in catalogue:
            for own in texts.values():
                own.append(text)
        elif first in texts:
            texts[first].append(rest)
        else:
            raise InvalidParameters(f"{text!r}: {first!r} is not compared.")
    counted = {"n_clusters": wish.n_clusters}
    return {name: {**counted, **read_values(tuple(t))} for name, t in texts.items()}


def case_of(
    file: str,
    table: TrialTable,
    protocol: str,
    values: Mapping[str, Any],
    lattice: Lattice,
    *,
    choose: str | None,
    seed: int,
) -> Case:
    """Return a case; :class:`InvalidParameters` says why it does not fit.

    values: parameters that are named; of others the protocol's `in_simulations` hold.
    """
    known = registry.protocol(protocol)
    given, evaluation = read_runs({**known.in_simulations, **values}, choose)
    layout = regular(lattice)
    agreed = fields_of_groups(table.X.shape, table.columns, table.agreed_fields, layout)
    params = registry.parse_params(protocol, given)
    request = session_terms.build_request(
        params,
        layout,
        evaluation=evaluation,
        seed=seed,
        dictionary=agreed.dictionary,
        preparation=agreed.preparation,
    )
    terms = session_terms.draw_up(SIMULATION, request, simulated=True)
    more = known.risks_of_runs(params, layout) if evaluation is not None else ()
    return Case(
        file=file,
        table=table,
        protocol=protocol,
        params=params,
        evaluation=evaluation,
        lattice=lattice,
        risks=sentences_of(session_terms.risks_in(read_terms(terms))),
        of_runs=tuple(f"{protocol}.{code}" for code in more),
    )


def _check_kind(table: TrialTable, protocol: str) -> None:
    """Refuse negative numbers where a protocol is for counts alone."""
    kinds = {method.data for method in registry.protocol(protocol).methods}
    if kinds == {"counts"} and np.nanmin(table.X) < 0:
        raise InvalidParameters("It is for counts; the table has numbers below 0.")
