"""A predictable protocol with two stages and three rounds, for testing the rest of Coterie.

It has every part of a real protocol: tasks, contributions, envelopes between parties,
memory, a state and a result per row group. Rounds fail or are repeated on demand.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Stage,
    role_factories,
)
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import Dummy

__all__ = ["PROTOCOL", "Dummy"]

_role = role_factories(__name__)

LEARNS: Final = {"analyst": "The number of rows.", "party": "Its labels."}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.STATISTICS,
        sentence="The analyst learns how many rows you hold.",
        remedy="Nothing.",
        readers=tuple(LEARNS.items()),
    )
}


class DummyProtocol(ClusteringProtocol[Dummy]):
    """Labels rows in turn from 0 to k-1, whatever their values are."""

    title = "Dummy"
    version = 2
    for_tests = True
    summary = "Labels rows in turn; for tests of services and clients."
    params = Dummy
    partitionings = ("horizontal", "vertical", "mixed")
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS

    def check_params(self, params: Dummy, layout: Layout) -> None:
        """Accept every layout."""

    def risks_of(self, params: Dummy, layout: Layout) -> Sequence[str]:
        """Return the code of the only risk."""
        return list(self.risks)

    def disclosures(self, params: Dummy, layout: Layout) -> frozenset[Disclosure]:
        """Return no disclosures, because labels do not depend on values."""
        return frozenset()

    def stages(self, params: Dummy, layout: Layout) -> Sequence[Stage]:
        """Return the stages: a greeting of one round, and a count of two."""
        from . import messages

        minimum = 0 if params.quorum else 1  # with a quorum, parties may be absent
        return (
            Stage(
                name="greeting",
                analyst=_role("analyst:Greeter"),
                party=_role("party:Greeter"),
                exchanges=(Exchange(messages.Greet, messages.Greeted),),
                envelopes=(messages.Word,),
            ),
            Stage(
                name="count",
                analyst=_role("analyst:Counter"),
                party=_role("party:Counter"),
                exchanges=(
                    Exchange(messages.Count, messages.Counted, minimum),
                    Exchange(messages.Confirm, messages.Confirmed),
                ),
                envelopes=(messages.Word,),
                results=(messages.Labels, messages.Total),
                results_to="row",
            ),
        )


PROTOCOL = DummyProtocol()
