"""A home on disk: policy, identities, files, locks and encryption."""
