"""Benchmarks: each prints the figures that README and docs quote."""
