"""What parties keep from the analyst, by calls of the `cryptography` library alone."""
