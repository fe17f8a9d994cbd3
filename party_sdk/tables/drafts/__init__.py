"""Dictionaries that people write, row by row."""
