"""Internal quality measures of a clustering, computed from sums or from rows.

To add a measure, add a field to :mod:`clustering_protocols.numerics.metrics` and
compute it in this package; CONTRIBUTING.md lists the other steps. Figures (the values
of measures) are computed from the final labels, never from the last centroids of an
algorithm, so that they equal those that scikit-learn computes from the labels.
"""
