"""What `dc` is good for."""

from clustering_protocols.common.suitability import Exposure, Method, RoundBudget, Shape

_DIAL = (
    "With dimensions 'all_but_one' (the default) each party leaves one dimension of its "
    "rows out: an analyst together with a party of its column group does not rebuild all "
    "rows, and labels differ from those of the pooled rows, the more the fewer features a "
    "party has and most with spectral clustering. With 'all' nothing is left out: labels "
    "are those of the pooled rows, parties may hold a single feature, and such an analyst "
    "rebuilds every row."
)


def _way(name: str, shape: Shape, **params: str) -> Method:
    return Method(
        name=name,
        partitionings=("horizontal", "vertical", "mixed"),
        shapes=(shape,),
        rounds=RoundBudget.ONE,
        analyst_sees=Exposure.GEOMETRY,
        exposure_with_one_party=Exposure.ROWS,
        params=params,
        dial=_DIAL,
    )


METHODS = (
    _way("kmeans", "spherical"),
    _way("spectral", "arbitrary", algorithm="spectral"),
)
