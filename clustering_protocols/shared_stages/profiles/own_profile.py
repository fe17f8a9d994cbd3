"""The profile of one party's rows, at home: to be read beside that of all parties."""

from __future__ import annotations

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.profiles.fields import ProfileFields
from clustering_protocols.shared_stages.profiles.own_sums import share_of
from clustering_protocols.shared_stages.profiles.profile import profile_of
from clustering_protocols.shared_stages.profiles.totals import N_SUMS, ProfileTotals
from clustering_protocols.terms.schema import Schema


def own_profile(
    schema: Schema, data: DataSource, labels: IntArray, column: int, smallest: int
) -> Profile:
    """Return what the clusters are like over the rows of one party.

    data: as the dictionary describes them, before anything is filled or scaled.
    labels: int64 (n_rows,); -1 for rows that are left out.
    column: the column group.
    smallest: clusters with fewer of these rows are one line together.
    """
    known = ProfileTotals(
        fields=ProfileFields(schema),
        n_clusters=1 + int(labels.max(initial=0)),
        n_rows=data.n_rows,
        n_members=1,
        smallest=smallest,
    )
    for _ in range(N_SUMS):
        known = known.with_sum(share_of(known, data, labels))
    return profile_of(known, column, own=True, rounded=False)
