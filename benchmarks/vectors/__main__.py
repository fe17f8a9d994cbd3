"""Write spec/vectors: ``python -m benchmarks.vectors [LAYER or PROTOCOL ...]``."""

from __future__ import annotations

import sys

from benchmarks.vectors.files import BUILDERS, VECTORS
from benchmarks.vectors.sessions import PROTOCOLS, build_sessions
from party_sdk.conformance.vectors import SCHEMA, SESSIONS, write_file, write_schema


def main(names: list[str]) -> None:
    """Write the files of these layers and protocols, all by default, and the schema."""
    (VECTORS / SESSIONS).mkdir(parents=True, exist_ok=True)
    (VECTORS / SCHEMA).write_text(write_schema())
    for name in names or (*BUILDERS, *PROTOCOLS):
        if name in BUILDERS:
            (VECTORS / f"{name}.json").write_text(write_file(BUILDERS[name]()))
        else:
            path = VECTORS / SESSIONS / f"{name}.json"
            path.write_text(write_file(build_sessions(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
