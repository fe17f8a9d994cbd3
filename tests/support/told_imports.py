"""`coterie` that writes down what it has imported when it ends: run as a program.

The product knows nothing of this. Worker processes read this file too, and write
nothing.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path

from party_sdk.cli import main


def tell() -> None:
    Path(os.environ["COTERIE_TEST_IMPORTS"]).write_text(json.dumps(list(sys.modules)))


if __name__ == "__main__":
    atexit.register(tell)
    main(prog_name="coterie")
