"""How good a partition is by itself: figures from sums and from rows.

No protocol is known here. The figures come from the final labels, never from where an
algorithm left its centroids: so they are scikit-learn's of the same labels.
"""
