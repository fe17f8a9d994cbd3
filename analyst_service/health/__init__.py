"""Whether the service lives, whether it can work, and its figures."""
