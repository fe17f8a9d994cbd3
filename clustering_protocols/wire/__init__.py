"""Formats that either the service or the SDK writes and the other reads."""
