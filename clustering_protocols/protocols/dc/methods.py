"""What `dc` is good for."""

from clustering_protocols.common.suitability import (
    Method,
    Partitioning,
    RoundBudget,
    Shape,
)

_SPLITS: tuple[Partitioning, ...] = ("horizontal", "vertical", "mixed")


def _way(
    name: str, shape: Shape, *agreement: tuple[float, float], **params: str
) -> Method:
    return Method(
        name=name,
        partitionings=_SPLITS,
        shapes=(shape,),
        rounds=RoundBudget.ONE,
        params=params,
        agreement=dict(zip(_SPLITS, agreement, strict=True)),
    )


METHODS = (
    _way("kmeans", "spherical", (0.21, 1.0), (0.84, 1.0), (0.5, 1.0)),
    _way(
        "spectral",
        "arbitrary",
        (0.19, 1.0),
        (0.39, 1.0),
        (0.05, 1.0),
        algorithm="spectral",
    ),
)
