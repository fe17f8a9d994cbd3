"""Pages about the parties of this home."""
