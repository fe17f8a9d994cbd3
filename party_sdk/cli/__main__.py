"""`python -m party_sdk.cli` is `coterie`."""

from party_sdk.cli import main
from party_sdk.home.process_exit import run_to_the_end


def command() -> None:
    """Run `coterie`."""
    run_to_the_end(main)


if __name__ == "__main__":
    command()
