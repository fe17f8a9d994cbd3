"""What `llf` is good for."""

from clustering_protocols.suitability import Partitioning, Rounds, Sees, Shape, Way


def _way(
    partitioning: Partitioning, seen: tuple[Sees, Sees], name: str, shape: Shape
) -> Way:
    fuzzy = {"algorithm": "fuzzy_cmeans", "output": "memberships"}
    return Way(
        name=name,
        partitionings=(partitioning,),
        shapes=(shape,),
        rounds=Rounds.MANY,
        analyst_sees=seen[0],
        together_see=seen[1],
        params=fuzzy if shape == "fuzzy" else {},
    )


_ROWS = (Sees.NOTHING, Sees.TOTALS)
_COLUMNS = (Sees.GEOMETRY, Sees.ROWS)

WAYS = (
    _way("horizontal", _ROWS, "cmeans", "spherical"),
    _way("horizontal", _ROWS, "fuzzy_cmeans", "fuzzy"),
    _way("vertical", _COLUMNS, "cmeans", "spherical"),
    _way("vertical", _COLUMNS, "fuzzy_cmeans", "fuzzy"),
)
