"""`coterie demo`: placeholder until dc stands."""

from __future__ import annotations

import click


@click.command()
def demo() -> None:
    """Show it."""
