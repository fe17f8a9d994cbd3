"""How good a partition is by itself: figures from sums, from rows, from distances.

No protocol is known here. The figures come from the final labels, never from where an
algorithm left its centroids: so they are scikit-learn's of the same labels.
"""
