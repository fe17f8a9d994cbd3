"""`coterie` in a process that may open 256 files: run as a program."""

from __future__ import annotations

import resource

if __name__ == "__main__":
    # here, and not above: worker processes read this file too
    from party_sdk.cli import main

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    main(prog_name="coterie")
