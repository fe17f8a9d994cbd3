"""`coterie` that writes down what it has imported when it ends: run as a program.

``COTERIE_TEST_COMMANDS``: a JSON list of commands to run one after another, in place of
the one that its words are. The product knows nothing of this. Worker processes read
this file too, and write nothing.
"""

import atexit
import json
import os
import sys
from pathlib import Path

from party_sdk.cli import main


def tell() -> None:
    Path(os.environ["COTERIE_TEST_IMPORTS"]).write_text(json.dumps(list(sys.modules)))


def run(words: list[str]) -> None:
    try:
        main(words, prog_name="coterie")
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    atexit.register(tell)
    for command in json.loads(os.environ.get("COTERIE_TEST_COMMANDS", "[]")) or [
        sys.argv[1:]
    ]:
        run(command)
