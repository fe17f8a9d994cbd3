"""A predictable protocol of two stages and three rounds, for tests of the house.

It has everything that a real protocol has: tasks, contributions, envelopes between
parties, memory, a state, a result per row group. It fails and repeats on demand.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import (
    ClusteringProtocol,
    Example,
    Exchange,
    Shown,
    Stage,
    Trace,
    role,
)
from clustering_protocols.terms import Layout

from .params import Dummy

__all__ = ["PROTOCOL", "Dummy"]


class DummyProtocol(ClusteringProtocol[Dummy]):
    """Labels rows in turn, 0 to k-1."""

    title = "Dummy"
    summary = "Labels rows in turn; for tests of services and clients."
    params = Dummy
    partitionings = ("horizontal", "vertical", "mixed")
    learns: ClassVar = {"analyst": "The number of rows.", "party": "Its labels."}
    risks: ClassVar = {
        "row-count-is-known": "The analyst learns how many rows you hold."
    }

    def check(self, params: Dummy, layout: Layout) -> None:
        """Accept every layout."""

    def risks_of(self, params: Dummy, layout: Layout) -> Sequence[str]:
        """Return the one risk code."""
        return list(self.risks)

    def shows(self, params: Dummy, layout: Layout) -> frozenset[Shown]:
        """Return nothing: labels in turn say nothing of rows."""
        return frozenset()

    def stages(self, params: Dummy, layout: Layout) -> Sequence[Stage]:
        """Return greeting (one round) and count (two rounds)."""
        from . import messages

        least = 0 if params.quorum else 1  # who is absent is not asked
        return (
            Stage(
                name="greeting",
                analyst=role(__name__, "analyst.Greeter"),
                party=role(__name__, "party.Greeter"),
                exchanges=(Exchange(messages.Greet, messages.Greeted),),
                envelopes=(messages.Word,),
            ),
            Stage(
                name="count",
                analyst=role(__name__, "analyst.Counter"),
                party=role(__name__, "party.Counter"),
                exchanges=(
                    Exchange(messages.Count, messages.Counted, least),
                    Exchange(messages.Confirm, messages.Confirmed),
                ),
                envelopes=(messages.Word,),
                results=(messages.Labels, messages.Total),
                results_to="row",
            ),
        )

    def examples(self) -> Sequence[Example[Dummy]]:
        """Return a plain run and one with void attempts."""
        X = np.random.default_rng(0).normal(size=(40, 6))
        return [
            Example(params=Dummy(n_clusters=3), layout=Layout.lattice(2, 2), X=X),
            Example(params=Dummy(void_attempts=1), layout=Layout.lattice(1), X=X),
        ]

    def pooled(
        self, params: Dummy, X: FloatArray, trace: Trace[Dummy] | None
    ) -> IntArray:
        """Return the labels of all rows in turn."""
        from . import pooled

        return pooled.labels(params, X)


PROTOCOL = DummyProtocol()
