"""What endpoints share: their parts of the process, JSON bodies, forms of arrays."""
