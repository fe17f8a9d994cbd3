"""Disclosures of a home's tables, to whom, over all its sessions."""
