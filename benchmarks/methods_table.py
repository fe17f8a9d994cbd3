"""The table of methods in docs/choosing.md, written from what the protocols say.

python -m benchmarks.methods_table
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clustering_protocols import catalogue
from party_sdk.advice import COLUMNS, comparison_row

PAGE: Final = Path(__file__).parents[1] / "docs" / "choosing.md"
_TITLES: Final = ("split", "data", *COLUMNS)


def render() -> str:
    """Return the table as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield f"| {' | '.join(_TITLES)} |"
    yield f"|{' --- |' * len(_TITLES)}"
    for split in ("horizontal", "vertical", "mixed"):
        for name, protocol in catalogue.catalogue().items():
            for way in protocol.methods:
                if split in way.partitionings:
                    row = (split, way.data, *comparison_row(name, way, split))
                    yield f"| {' | '.join(row)} |"


def main() -> None:
    """Replace the table on the page."""
    before, _, rest = PAGE.read_text().partition(f"| {_TITLES[0]} | {_TITLES[1]} |")
    after = rest[rest.index("\n\n") :]
    PAGE.write_text(before + render() + after)


if __name__ == "__main__":
    main()
