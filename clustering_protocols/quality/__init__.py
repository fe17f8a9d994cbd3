"""Internal quality measures of a partition, from sums and from rows.

A new measure is a field in :mod:`clustering_protocols.numerics.metrics` and is computed
here; CONTRIBUTING.md lists the rest. Figures come from the final labels, never from the
last centroids of an algorithm: so they are scikit-learn's of the same labels.
"""
