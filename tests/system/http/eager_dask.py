"""`coterie` that sends blocks of few rows to a cluster: run as a program.

Worker processes read this file too: what is set here holds in them.
"""

from __future__ import annotations

from analyst_service import process_context
from analyst_service.engines import dask_engine
from clustering_protocols.algorithms import lloyd
from clustering_protocols.numerics import row_blocks

process_context.LEASE_SECONDS = 1.0
dask_engine.WORTH_SENDING = 0.0
lloyd.WORTH_A_THREAD = 0
row_blocks.BLOCK_ITEMS = 500

if __name__ == "__main__":
    from party_sdk.cli import main

    main(prog_name="coterie")
