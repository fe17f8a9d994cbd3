"""Read a table by a session's dictionary, and admit or refuse it."""
