"""`coterie` on a machine whose clock is wrong by ``COTERIE_TEST_SKEW`` seconds.

Run as a program. What reads the machine's clock is replaced here: the product knows
nothing of this.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

if __name__ == "__main__":
    # here, and not above: worker processes read this file too
    from analyst_service import clock
    from party_sdk.cli import main

    class Skewed(clock.SystemClock):
        def now(self) -> datetime:
            skew = float(os.environ["COTERIE_TEST_SKEW"])
            return super().now() + timedelta(seconds=skew)

    clock.SystemClock = Skewed  # type: ignore[misc]  # before anybody asks for it
    main(prog_name="coterie")
