"""`coterie session …`: what a coordinator does."""
