"""Count the people whom parties have in common, without revealing who they are.

Lists of ids or match keys are passed around the parties of a row group. Each party
masks and shuffles these lists, so that nobody can trace a row. The analyst counts the
matches, and everybody learns their number, rounded down to a multiple of ``step``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.contract import ClusteringProtocol, Disclosure, Stage
from clustering_protocols.shared_stages import alignment
from clustering_protocols.terms.session_risks import GUESSED_PEOPLE
from clustering_protocols.terms.terms import Layout

from .params import CohortSize

__all__ = ["PROTOCOL", "CohortSize"]

_LEARNS = {
    "analyst": "How many people parties have in common by each key, but not who they are.",
    "party": "The number of people whom all have in common, rounded down.",
    "coordinator": "The same number.",
}


class CohortProtocol(ClusteringProtocol[CohortSize]):
    """Counts the people whom parties have in common, by masked ids; clusters nothing."""

    title = "How many people in common"
    summary = (
        "Before anything is clustered, the parties learn how many people they all have "
        "in common, rounded down, but not which ones."
    )
    params = CohortSize
    partitionings = ("vertical", "mixed")
    learns: ClassVar = _LEARNS
    risks: ClassVar = {}
    apart: ClassVar = ""

    def check_params(self, params: CohortSize, layout: Layout) -> None:
        """Refuse a layout in which no two parties share rows."""
        alignment.check_rows_are_shared(params, layout)

    def figures(self, params: CohortSize, layout: Layout) -> frozenset[str]:
        """Return no quality figures, because there are no clusters to measure."""
        return frozenset()

    def risks_of(self, params: CohortSize, layout: Layout) -> Sequence[str]:
        """Return the code of the risk that somebody tests guesses about who is listed."""
        return (GUESSED_PEOPLE,)

    def disclosures(self, params: CohortSize, layout: Layout) -> frozenset[Disclosure]:
        """Return no disclosures, because no value of a row is used."""
        return frozenset()

    def personal_data(self, layout: Layout) -> str:
        """State that ids are sent in masked form."""
        return (
            "Ids are sent masked; nobody learns which of them other parties have too."
        )

    def stages(self, params: CohortSize, layout: Layout) -> Sequence[Stage]:
        """Return the only stage, in which linked rows are counted."""
        from clustering_protocols.shared_stages.alignment import linkage

        from . import roles

        counting = Stage(
            name="counting",
            analyst=lambda: roles.CountingAnalyst(params.alignment, params.step),
            party=lambda: roles.CountingParty(
                alignment=params.alignment, unit=params.step
            ),
            exchanges=linkage.build_ring_exchanges(layout),
            envelopes=(linkage.MaskedKeys,),
            results=(roles.Counted,),
            results_to="all",
        )
        return (counting,)


PROTOCOL = CohortProtocol()
