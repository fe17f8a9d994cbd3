"""What `dc` is good for."""

from clustering_protocols.suitability import Rounds, Sees, Shape, Way


def _way(name: str, shape: Shape, **params: str) -> Way:
    return Way(
        name=name,
        partitionings=("horizontal", "vertical", "mixed"),
        shapes=(shape,),
        rounds=Rounds.ONE,
        analyst_sees=Sees.GEOMETRY,
        together_see=Sees.ROWS,
        params=params,
    )


WAYS = (
    _way("kmeans", "spherical"),
    _way("spectral", "arbitrary", algorithm="spectral"),
)
