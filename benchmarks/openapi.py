"""Writes spec/openapi.json, from which clients are made, and our client's types.

    python -m benchmarks.openapi

A test compares the file with what this writes, so that no operation or component is
renamed unnoticed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from analyst_service.app import create_app
from analyst_service.settings import Settings
from benchmarks.vectors.sessions import PROTOCOLS
from clustering_protocols.engine.message_tables import build_message_table

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "spec" / "openapi.json"
CLIENT: Final = ROOT / "clients" / "typescript"


def page() -> str:
    """Return the description without the version, which differs from build to build."""
    document = create_app(Settings()).openapi()
    document["info"].pop("version")
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def run_type_generator(*flags: str) -> None:
    """Let the client write the types of its protocols' messages, or --check them."""
    tables = [build_message_table(name).model_dump(mode="json") for name in PROTOCOLS]
    command = ["npm", "run", "--silent", "generate", "--", *flags]
    subprocess.run(command, cwd=CLIENT, input=json.dumps(tables), text=True, check=True)


if __name__ == "__main__":
    PAGE.write_text(page())
    if not (CLIENT / "node_modules").is_dir():
        sys.exit(
            "The client's types were not written: run `make client`, then this again."
        )
    run_type_generator()
