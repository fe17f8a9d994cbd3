"""Stage without a round: what does not fit the roster ends the session at once.

Numbers of parties, segments and noise are checked when the session is created. Numbers
of rows and features are known when all have joined: before the first task goes out.
"""

from __future__ import annotations

from collections.abc import Mapping

from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    PartyContext,
    PartyRole,
    Reopen,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import rosters, sizes

NAME = "admission"


class Admitted(Record):
    """The analyst's state: nothing."""

    kind = "admitted"


class AdmissionAnalyst(AnalystRole):
    """Looks at the roster."""

    state = Admitted

    def start(self, session: SessionContext) -> Ask | Finish:
        """Finish, or end the session with what does not fit."""
        check(session)
        return Finish()

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Refuse: there is no round."""
        raise ValueError("admission has no round")


class AdmissionParty(PartyRole):
    """Is never asked."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Refuse: there is no task."""
        raise ValueError("admission has no task")


def check(session: SessionContext) -> None:
    """Refuse rows, features or clusters that the terms have no room for."""
    params = rosters.params_of(session)
    n, d = rosters.n_rows(session), rosters.n_features(session)
    if n > params.max_rows:
        raise ProtocolFailed(f"{n} rows came together; max_rows is {params.max_rows}.")
    needed = sizes.analyst_bytes(params, n, d)
    if needed > params.memory_limit:
        most = sizes.most_rows(
            lambda rows: sizes.analyst_bytes(params, rows, d), params.memory_limit
        )
        raise ProtocolFailed(
            f"{n} rows of {d} features take {needed} bytes; memory_limit is "
            f"{params.memory_limit}, room for {most} rows."
        )
    if params.n_clusters is not None and params.n_clusters > n:
        raise ProtocolFailed(f"n_clusters is {params.n_clusters}; there are {n} rows.")
    if params.declared is not None and len(params.declared) != d:
        raise ProtocolFailed(
            f"declared has {len(params.declared)} features; the parties hold {d}."
        )


def stage() -> Stage:
    """Return the stage."""
    return Stage(
        name=NAME, analyst=AdmissionAnalyst, party=AdmissionParty, records=(Admitted,)
    )
