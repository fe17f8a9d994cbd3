"""The profile of one party's rows, at home: to be read beside that of all parties."""

from __future__ import annotations

from clustering_protocols.arrays import IntArray
from clustering_protocols.data import DataSource
from clustering_protocols.profiles import Profile
from clustering_protocols.profiling.counting import share_of
from clustering_protocols.profiling.fields import Fields
from clustering_protocols.profiling.profile import profile_of
from clustering_protocols.profiling.totals import N_SUMS, Totals
from clustering_protocols.schema import Schema


def own_profile(
    schema: Schema, data: DataSource, labels: IntArray, column: int, smallest: int
) -> Profile:
    """Return what the clusters are like over the rows of one party.

    Parameters
    ----------
    data : DataSource
        As the dictionary describes them, before anything is filled or scaled.
    labels : int64 array of shape (n_rows,)
        -1 for rows that are left out.
    column : int
        The column group.
    smallest : int
        Clusters with fewer of these rows are one line together.
    """
    known = Totals(
        fields=Fields(schema),
        n_clusters=1 + int(labels.max(initial=0)),
        n_rows=data.n_rows,
        n_members=1,
        smallest=smallest,
    )
    for _ in range(N_SUMS):
        known = known.with_sum(share_of(known, data, labels))
    return profile_of(known, column, own=True, rounded=False)
