"""What `pqmds` is good for."""

from clustering_protocols.suitability import Rounds, Sees, Way

WAYS = (
    Way(
        name="kmeans",
        partitionings=("vertical",),
        shapes=("spherical",),
        rounds=Rounds.ONE,
        analyst_sees=Sees.GEOMETRY,
        together_see=Sees.ROWS,  # codes of people whose names are known
    ),
)
