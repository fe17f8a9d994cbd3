"""Pages of the parties of this home."""
