"""Where arrays lie: bytes by their SHA-256, in files or in an object store."""
