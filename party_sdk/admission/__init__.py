"""A table comes to a session: named, read by its dictionary, and admitted or refused."""
