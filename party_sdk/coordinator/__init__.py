"""The work of a coordinator: opening sessions, parsing options and writing letters."""
