"""A mapping is drafted from a table and a dictionary, for a person to complete."""
