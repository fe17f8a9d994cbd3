"""Trying things out on one machine: compare, simulate, demo, examples."""
