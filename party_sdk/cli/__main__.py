"""`python -m party_sdk.cli` is `coterie`."""

import sys
from io import TextIOWrapper

from party_sdk.cli import main
from party_sdk.home.process_exit import run_without_finalisation


def command() -> None:
    """Run `coterie`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Windows consoles lack some letters: print ? instead of raising an error
            stream.reconfigure(errors="replace")
    run_without_finalisation(main)


if __name__ == "__main__":
    command()
