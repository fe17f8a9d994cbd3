"""Builders that create the models of pages from sessions and protocols."""
