"""Tasks out, contributions in: each is checked, stored and receipted by the service.

The check itself is :mod:`clustering_protocols.engine.contribution_checks`, which parties
and simulations share. Uploads only store; they know no jobs.
"""
