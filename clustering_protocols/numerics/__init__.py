"""Compiled kernels, block-wise computation, sources of rows, and quality measures."""
