"""Clustering algorithms that take a single matrix and know nothing about sessions."""
