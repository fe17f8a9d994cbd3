"""Errors, limits and base classes that every other package of this library uses."""
