"""What `llf` is good for."""

from clustering_protocols.common.suitability import (
    Exposure,
    Method,
    Partitioning,
    RoundBudget,
    Shape,
)


def _way(
    partitioning: Partitioning, seen: tuple[Exposure, Exposure], name: str, shape: Shape
) -> Method:
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
        analyst_sees=seen[0],
        exposure_with_one_party=seen[1],
        params=params,
        agreement={partitioning: (1.0, 1.0)},
    )


_ROWS = (Exposure.NOTHING, Exposure.TOTALS)
_COLUMNS = (Exposure.GEOMETRY, Exposure.ROWS)

METHODS = (
    _way("horizontal", _ROWS, "cmeans", "spherical"),
    _way("horizontal", _ROWS, "fuzzy_cmeans", "fuzzy"),
    _way("vertical", _COLUMNS, "cmeans", "spherical"),
    _way("vertical", _COLUMNS, "fuzzy_cmeans", "fuzzy"),
)
