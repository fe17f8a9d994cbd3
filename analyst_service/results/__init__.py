"""Results: each party its own, the coordinator a summary."""
