"""What `omnifc` is good for."""

from clustering_protocols.suitability import Rounds, Sees, Shape, Way


def _way(name: str, *shapes: Shape) -> Way:
    return Way(
        name=name,
        partitionings=("horizontal",),
        shapes=shapes,
        rounds=Rounds.FEW,
        analyst_sees=Sees.GEOMETRY,
        together_see=Sees.ROWS,
        params={} if name == "kmeans" else {"algorithm": name},
        counted=name != "dbscan",
    )


WAYS = (
    _way("kmeans", "spherical"),
    _way("fuzzy_cmeans", "fuzzy"),
    _way("kmedoids", "spherical"),
    _way("spectral", "arbitrary"),
    _way("dbscan", "arbitrary"),
    _way("hierarchical", "spherical", "arbitrary"),
)
