"""Coordinating: opening sessions, reading options, writing letters."""
