"""Run the command `coterie` with `python -m party_sdk.cli`."""

import sys
from io import TextIOWrapper

from party_sdk.cli import main
from party_sdk.home.process_exit import run_without_finalisation


def command() -> None:
    """Run the command `coterie`, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Windows consoles cannot encode some letters: print ? instead of raising.
            stream.reconfigure(errors="replace")
    run_without_finalisation(main)


if __name__ == "__main__":
    command()
