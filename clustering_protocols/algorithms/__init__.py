"""Clustering algorithms that an analyst runs on a matrix."""
