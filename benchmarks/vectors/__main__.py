"""Write spec/vectors: ``python -m benchmarks.vectors [LAYER ...]``."""

from __future__ import annotations

import sys

from benchmarks.vectors.files import BUILDERS, VECTORS
from party_sdk.conformance.vectors import SCHEMA, write_file, write_schema


def main(names: list[str]) -> None:
    """Write the files of these layers, all by default, and the schema."""
    VECTORS.mkdir(exist_ok=True)
    (VECTORS / SCHEMA).write_text(write_schema())
    for name in names or BUILDERS:
        (VECTORS / f"{name}.json").write_text(write_file(BUILDERS[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
