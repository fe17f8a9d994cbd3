"""A table is mended at home by a file that says how; nothing of it is sent."""
