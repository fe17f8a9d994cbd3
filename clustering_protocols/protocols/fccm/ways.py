"""What `fccm` is good for."""

from clustering_protocols.suitability import Rounds, Sees, Way

WAYS = (
    Way(
        name="fccm",
        partitionings=("vertical",),
        shapes=("co-clusters", "fuzzy"),
        data="counts",
        rounds=Rounds.MANY,
        analyst_sees=Sees.NOTHING,
        together_see=Sees.TOTALS,
    ),
)
