"""What `pqmds` is good for."""

from clustering_protocols.common.suitability import Method, RoundBudget

METHODS = (
    Method(
        name="kmeans",
        partitionings=("vertical",),
        shapes=("spherical",),
        rounds=RoundBudget.ONE,
        agreement={"vertical": (0.55, 0.95)},
    ),
)
