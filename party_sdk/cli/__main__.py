"""`python -m party_sdk.cli` is `coterie`."""

from party_sdk.cli import main

main()
