"""Describe the variables of all rows: counts, means, quartiles and levels.

Parties that hold the same variables add up the masked sums of a profile in which all
rows form one cluster. Quartiles of a number are computed only if the dictionary gives
both ends of its range, because histogram bins must not follow from rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Stage,
)
from clustering_protocols.shared_stages import secrets
from clustering_protocols.terms.terms import Layout

from .params import Describe

__all__ = ["PROTOCOL", "Describe"]

_LEARNS = {
    "analyst": "The rounded description of all rows together.",
    "party": "The exact description of all rows together.",
    "coordinator": "The rounded description of all rows together.",
}


class DescribeProtocol(ClusteringProtocol[Describe]):
    """Describes variables of split rows by masked sums, without clustering anything."""

    title = "Look before you cluster"
    summary = (
        "Variables are described before anything is clustered: values and gaps, mean, "
        "standard deviation, quartiles, levels, over all rows together, by masked sums."
    )
    params = Describe
    partitionings = ("horizontal",)
    learns: ClassVar = _LEARNS
    risks: ClassVar = {}
    apart: ClassVar = ""

    def check_params(self, params: Describe, layout: Layout) -> None:
        """Refuse split columns, and fewer than three parties."""
        if layout.n_column_groups > 1:
            raise InvalidParameters("describe needs split rows.")
        if len(layout.slots) < MINIMUM_MEMBERS:
            raise InvalidParameters(
                f"describe needs {MINIMUM_MEMBERS} parties: with two, each could "
                "subtract its own rows from the sum and read the other's."
            )

    def figures(self, params: Describe, layout: Layout) -> frozenset[str]:
        """Return no quality figures, because there are no clusters to measure."""
        return frozenset()

    def risks_of(self, params: Describe, layout: Layout) -> Sequence[str]:
        """Return no risk codes, because the release of profiles adds the risks."""
        return ()

    def disclosures(self, params: Describe, layout: Layout) -> frozenset[Disclosure]:
        """Return no disclosures, because the release of profiles declares them."""
        return frozenset()

    def stages(self, params: Describe, layout: Layout) -> Sequence[Stage]:
        """Return the stages that precede the profiles: secrets and the opening."""
        from . import roles

        opening = Stage(
            name="opening-description",
            analyst=roles.Opener,
            party=roles.Describer,
            exchanges=(Exchange(roles.Begin, roles.Present),),
            results=(roles.Described,),
            results_to="all",
        )
        return (secrets.build_stage("column"), opening)


PROTOCOL = DescribeProtocol()
