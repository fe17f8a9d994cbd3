"""What an analyst runs on a matrix."""
