"""Terms in a file, and whose place in them is meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustering_protocols.terms.terms import Terms


def read_terms_file(path: Path, slot: str | None) -> tuple[Terms, str]:
    """Return the terms in a file, and the slot that is named, or the only one.

    Raises InvalidParameters if the file cannot be read, or has other slots.
    """
    from clustering_protocols.common.errors import InvalidParameters
    from clustering_protocols.terms.terms import read_terms

    try:
        terms = read_terms(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"{path.name!r} cannot be read.") from None
    names = terms.layout.names
    if slot is None and len(names) == 1:
        return terms, names[0]
    if slot not in names:
        raise InvalidParameters(f"Name your slot (--slot): {', '.join(names)}.")
    return terms, slot
