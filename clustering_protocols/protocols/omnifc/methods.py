"""What `omnifc` is good for."""

from clustering_protocols.common.suitability import Method, RoundBudget, Shape


def _way(name: str, *shapes: Shape) -> Method:
    return Method(
        name=name,
        partitionings=("horizontal",),
        shapes=shapes,
        rounds=RoundBudget.FEW,
        params={} if name == "kmeans" else {"algorithm": name},
        counted=name != "dbscan",
        agreement={"horizontal": (1.0, 1.0)},
    )


METHODS = (
    _way("kmeans", "spherical"),
    _way("fuzzy_cmeans", "fuzzy"),
    _way("kmedoids", "spherical"),
    _way("spectral", "arbitrary"),
    _way("dbscan", "arbitrary"),
    _way("hierarchical", "spherical", "arbitrary"),
)
