"""What `llf` is good for."""

from clustering_protocols.common.suitability import (
    Method,
    Partitioning,
    RoundBudget,
    Shape,
)


def _way(partitioning: Partitioning, name: str, shape: Shape) -> Method:
    params = {}
    if shape == "fuzzy":
        params = {"algorithm": "fuzzy_cmeans"}
        # over columns the memberships of the result are rows of others too
        params |= {"output": "memberships"} if partitioning == "horizontal" else {}
    return Method(
        name=name,
        partitionings=(partitioning,),
        shapes=(shape,),
        rounds=RoundBudget.MANY,
        params=params,
        agreement={partitioning: (1.0, 1.0)},
    )


METHODS = (
    _way("horizontal", "cmeans", "spherical"),
    _way("horizontal", "fuzzy_cmeans", "fuzzy"),
    _way("vertical", "cmeans", "spherical"),
    _way("vertical", "fuzzy_cmeans", "fuzzy"),
)
