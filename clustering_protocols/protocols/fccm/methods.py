"""What `fccm` is good for."""

from clustering_protocols.common.suitability import Method, RoundBudget

METHODS = (
    Method(
        name="fccm",
        partitionings=("vertical",),
        shapes=("co-clusters", "fuzzy"),
        data="counts",
        rounds=RoundBudget.MANY,
        params={"small_cohorts": "allow"},
        agreement={"vertical": (1.0, 1.0)},
    ),
)
