"""What parties agree on: the terms, who takes part, and what can be proved of it.

``Layout`` stands here too until 0.4.0, as documents of 0.2.0 import it from here; it is in
:mod:`clustering_protocols.terms.terms`.
"""

from __future__ import annotations

from typing import Any
from warnings import warn


def __getattr__(name: str) -> Any:
    """Return what the module of this name held in 0.2.0, with a warning."""
    if name != "Layout":  # also asked for each module here, before it is imported
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clustering_protocols.terms import terms

    warn(
        "Import Layout from clustering_protocols.terms.terms: the other way ends with "
        "0.4.0.",
        DeprecationWarning,
        stacklevel=2,
    )
    return terms.Layout
