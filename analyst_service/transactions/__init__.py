"""What a transaction writes beside its change, and what shares or follows it."""
