"""Clustering algorithms that run on one matrix, with no session around them."""
