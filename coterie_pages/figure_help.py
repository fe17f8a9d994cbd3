"""How to read a figure: what it says, and which of two values is the better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

READING: Final[Mapping[str, str]] = {
    "inertia": "Sum of the squared distances of rows to the mean of their cluster. "
    "It falls with every further cluster: look for where it stops falling fast.",
    "simplified_silhouette": "How much nearer rows are to their own cluster's middle than "
    "to the next one's, from -1 to 1. The larger, the better; near 0 clusters touch.",
    "silhouette": "How much nearer rows are to the rows of their own cluster than to "
    "those of the next, from -1 to 1. The larger, the better; near 0 clusters touch.",
    "calinski_harabasz": "How far clusters lie apart, against how wide they are. The "
    "larger, the better; compare it between numbers of clusters only.",
    "davies_bouldin": "How much each cluster overlaps with the one it is hardest to tell "
    "from. The smaller, the better.",
    "partition_coefficient": "How clearly rows belong to one cluster rather than to "
    "several, up to 1. The larger, the better; it favours few clusters.",
    "xie_beni": "How wide clusters are, against how near the two nearest are to each "
    "other. The smaller, the better.",
    "criterion": "What the method itself makes as large as it can. Compare starts and "
    "runs of one method by it, not methods.",
    "gap": "How much tighter clusters are than in rows without any. The larger, the "
    "better; where even the best is not above that of one cluster, there are none.",
    "stability": "How alike the clusters are that each half of the rows gives, up to 1. "
    "The larger, the better; well below 1 others would find other clusters.",
    "prediction_strength": "How many pairs of the least predictable cluster one half of the "
    "rows keeps together for the other, up to 1. Above .8 clusters are usually real.",
    "n_iter": "How many updates were made.",
    "converged": "Whether the result came to rest. If not, allow more updates.",
}
"""By the names of :class:`clustering_protocols.numerics.metrics.Figures`."""
