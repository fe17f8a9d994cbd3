"""Which files of vectors there are, and what builds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.vectors import (
    alignment,
    envelopes,
    intersection,
    linkage,
    primitives,
    records,
    roster,
    sums,
    transcripts,
)
from benchmarks.vectors.form import Layer

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"

BUILDERS: Final[dict[str, Callable[[], Layer]]] = {
    "primitives": primitives.build_layer,
    "roster": roster.build_layer,
    "records": records.build_layer,
    "transcript": transcripts.build_layer,
    "sums": sums.build_layer,
    "envelopes": envelopes.build_layer,
    "alignment": alignment.build_layer,
    "intersection": intersection.build_layer,
    "linkage": linkage.build_layer,
}
