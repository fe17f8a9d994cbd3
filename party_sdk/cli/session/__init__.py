"""`coterie session …`: commands of a coordinator."""
