"""`coterie party …`: what a party operator does."""
