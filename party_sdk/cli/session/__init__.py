"""`coterie session …`: the commands of a coordinator."""
