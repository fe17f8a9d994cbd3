"""Build the models of pages from sessions and protocols."""
