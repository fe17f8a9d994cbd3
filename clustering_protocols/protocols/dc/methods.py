"""What `dc` is good for."""

from clustering_protocols.suitability import Exposure, Method, RoundBudget, Shape


def _way(name: str, shape: Shape, **params: str) -> Method:
    return Method(
        name=name,
        partitionings=("horizontal", "vertical", "mixed"),
        shapes=(shape,),
        rounds=RoundBudget.ONE,
        analyst_sees=Exposure.GEOMETRY,
        exposure_with_one_party=Exposure.ROWS,
        params=params,
    )


METHODS = (
    _way("kmeans", "spherical"),
    _way("spectral", "arbitrary", algorithm="spectral"),
)
