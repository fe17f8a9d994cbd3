"""How good a partition is by itself: quality measures, from sums and from rows.

A new measure is a field in :mod:`clustering_protocols.numerics.metrics` and is computed
here. CONTRIBUTING.md lists the rest. No protocol is known here. The figures
come from the final labels, never from where an algorithm left its centroids: so they
are scikit-learn's of the same labels.
"""
