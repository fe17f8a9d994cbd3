"""Coordinating: pages of the sessions that this home opens."""
