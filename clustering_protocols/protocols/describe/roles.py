"""Both roles of a description, which puts all rows into one cluster to profile it.

The sums of the description are sent in the messages of the stage of profiles.
"""

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

from .params import Describe, DescribeContext, DescribeSession


class Begin(Record):
    """Task: confirm that you are taking part."""

    kind = "begin"


class Present(Record):
    """Contribution: the confirmation that this party is taking part."""

    kind = "present"
    reach = "agreement"
    meaning = "Confirms that you take part; contains no number and no row."


class Described(Record):
    """Result and summary: empty, because the description is the profile of all rows."""

    kind = "described"


class Opener(AnalystRole[Describe, Present]):
    """Waits until all parties take part. The stage of profiles then adds up sums."""

    def start(self, session: DescribeSession) -> Ask:
        """Ask every party to take part."""
        return Ask.to_everybody(session, Begin())

    def step(
        self,
        session: DescribeSession,
        state: Record,
        contributions: Mapping[str, Present],
    ) -> Finish:
        """Finish with an empty result, which puts all rows into one cluster."""
        results = dict.fromkeys(session.slots, Described())
        return Finish.with_results(results, summary=Described(), labelled_at_home=True)


class Describer(PartyRole[Describe, Begin, Record, Described]):
    """Confirms that it takes part, and puts all of its rows into one cluster."""

    def reply(self, context: DescribeContext, task: Begin, data: DataSource) -> Reply:
        """Confirm that this party takes part."""
        return Reply(contribution=Present())

    def conclude(
        self,
        context: DescribeContext,
        result: Described,
        data: DataSource | None,
    ) -> Outcome:
        """Return an outcome in which every row has the label 0."""
        n_rows = context.session.n_rows(context.slot.name)
        return Outcome(labels=np.zeros(n_rows, dtype=np.int64))
