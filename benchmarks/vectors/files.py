"""Which files of vectors there are, and what builds each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks.vectors import envelopes, records, roster, sums, transcripts
from benchmarks.vectors.form import VECTORS, Layer
from benchmarks.vectors.product import restate_layer

BUILDERS: Final[dict[str, Callable[[], Layer]]] = {
    "primitives": partial(restate_layer, "primitives"),
    "roster": roster.build_layer,
    "records": records.build_layer,
    "transcript": transcripts.build_layer,
    "sums": sums.build_layer,
    "envelopes": envelopes.build_layer,
    "alignment": partial(restate_layer, "alignment"),
    "intersection": partial(restate_layer, "intersection"),
    "linkage": partial(restate_layer, "linkage"),
}

__all__ = ["BUILDERS", "VECTORS"]
