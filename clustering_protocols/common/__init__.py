"""Shared by all folders: errors, the catalogue of problems, limits, values."""
