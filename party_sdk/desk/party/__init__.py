"""Taking part: pages of the parties of this home."""
