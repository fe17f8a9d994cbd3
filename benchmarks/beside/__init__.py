"""Coterie and its peers on one table, each in an environment of its own."""
