"""Internal quality measures of a partition, from sums and from rows.

A new measure is a field in :mod:`clustering_protocols.numerics.metrics` and is computed
here; CONTRIBUTING.md lists the other steps. Figures are computed from the final labels,
never from an algorithm's last centroids, so that they equal scikit-learn's for the labels.
"""
