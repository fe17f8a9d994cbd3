"""What `pqmds` is good for."""

from clustering_protocols.common.suitability import Exposure, Method, RoundBudget

_DIAL = (
    "With coordinates 1 (the default) a party sends one number for each few features: "
    "features can be told from their codes in part, and labels differ from those of the "
    "pooled rows. With as many coordinates as sub_dim, distances between the centres of a "
    "subspace are kept: labels come near to the pooled ones, and who knows a few rows "
    "reads nearly every feature of all of them."
)

METHODS = (
    Method(
        name="kmeans",
        partitionings=("vertical",),
        shapes=("spherical",),
        rounds=RoundBudget.ONE,
        analyst_sees=Exposure.GEOMETRY,
        exposure_with_one_party=Exposure.ROWS,  # codes of people whose names are known
        dial=_DIAL,
    ),
)
