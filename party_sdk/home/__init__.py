"""A home on disk: the policy at which a party stops, identities, files, encryption."""
