"""Which clusters of a partition have a line of their own in its profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustering_protocols.records.arrays import IntArray


@dataclass(frozen=True, slots=True)
class ProfileLines:
    """The lines of a profile: a cluster each, then small ones together.

    clusters: labels with a line of their own, ascending.
    others: labels of the last line; none where there is no such line.
    """

    clusters: tuple[int, ...]
    others: tuple[int, ...]

    @classmethod
    def of(cls, sizes: IntArray, smallest: int) -> ProfileLines:
        """Return the lines of clusters with ``sizes`` (k,) rows.

        Clusters of fewer than ``smallest`` rows are one line; and with them, while they
        are one alone or have fewer rows together, the next smallest: anyone who knows the
        whole could else take all other lines off it. There is no line at all where all
        rows together are too few.
        """
        ascending = [int(c) for c in np.argsort(sizes, kind="stable") if sizes[c] > 0]
        n_small = int(np.count_nonzero((sizes > 0) & (sizes < smallest)))
        while n_small and n_small < len(ascending):
            together = int(sizes[ascending[:n_small]].sum())
            if n_small > 1 and together >= smallest:
                break
            n_small += 1
        others = ascending[:n_small]
        if others and int(sizes[others].sum()) < smallest:
            return cls((), ())
        left = [c for c in ascending if c not in others]
        return cls(tuple(sorted(left)), tuple(sorted(others)))

    def __len__(self) -> int:
        return len(self.clusters) + bool(self.others)

    def line_of(self, n_clusters: int) -> IntArray:
        """Return the number of the line of each cluster (k,); -1 for those with none."""
        found = np.full(n_clusters, -1, dtype=np.int64)
        found[list(self.clusters)] = np.arange(len(self.clusters))
        found[list(self.others)] = len(self.clusters)
        return found
