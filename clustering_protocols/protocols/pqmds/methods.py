"""What `pqmds` is good for."""

from clustering_protocols.common.suitability import Exposure, Method, RoundBudget

METHODS = (
    Method(
        name="kmeans",
        partitionings=("vertical",),
        shapes=("spherical",),
        rounds=RoundBudget.ONE,
        analyst_sees=Exposure.GEOMETRY,
        exposure_with_one_party=Exposure.ROWS,  # codes of people whose names are known
        agreement={"vertical": (0.55, 0.95)},
    ),
)
