"""Sessions: their terms, where they stand, and what may happen to them."""
