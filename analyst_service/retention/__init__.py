"""Retention: what is removed when, and how that is safe while others write."""
