"""Both roles of a description: all rows form one cluster, whose profile is added up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Outcome,
    PartyRole,
    Reply,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.record import Record

from . import messages
from .params import Describe, DescribeContext, DescribeSession


class Opener(AnalystRole[Describe, messages.Present]):
    """Waits for all parties; the sums follow in the stage of profiles."""

    def start(self, session: DescribeSession) -> Ask:
        """Ask everybody to take part."""
        return Ask.everybody(session, messages.Begin())

    def step(
        self,
        session: DescribeSession,
        state: Record,
        contributions: Mapping[str, messages.Present],
    ) -> Finish:
        """Return the result, which puts all rows into one cluster."""
        results = dict.fromkeys(session.slots, messages.Described())
        return Finish.with_results(
            results, summary=messages.Described(), labelled_at_home=True
        )


class Describer(PartyRole[Describe, messages.Begin, Record, messages.Described]):
    """Puts all rows of this party into one cluster."""

    def reply(
        self, context: DescribeContext, task: messages.Begin, data: DataSource
    ) -> Reply:
        """Confirm that this party takes part."""
        return Reply(contribution=messages.Present())

    def conclude(
        self,
        context: DescribeContext,
        result: messages.Described,
        data: DataSource | None,
    ) -> Outcome:
        """Return label 0 for each row."""
        n_rows = context.session.n_rows(context.slot.name)
        return Outcome(labels=np.zeros(n_rows, dtype=np.int64))
