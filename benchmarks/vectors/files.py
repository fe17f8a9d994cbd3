"""Which files of vectors there are, and what builds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.vectors import (
    envelopes,
    intersection,
    linkage,
    records,
    roster,
    sums,
    transcripts,
)
from benchmarks.vectors.form import Layer, read_layer
from benchmarks.vectors.product import build_case

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"


def restate(name: str) -> Layer:
    """Return a layer whose file is edited by hand, with new outputs of its inputs.

    A new case starts with an empty output, or with the problem with which it must fail.
    """
    layer = read_layer(VECTORS / f"{name}.json")
    cases = [
        build_case(
            *(case.name, case.section, case.call, case.input),
            fails=case.problem,
            tolerance=case.tolerance,
        )
        for case in layer.cases
    ]
    return layer.model_copy(update={"cases": cases})


BUILDERS: Final[dict[str, Callable[[], Layer]]] = {
    "primitives": partial(restate, "primitives"),
    "roster": roster.build_layer,
    "records": records.build_layer,
    "transcript": transcripts.build_layer,
    "sums": sums.build_layer,
    "envelopes": envelopes.build_layer,
    "alignment": partial(restate, "alignment"),
    "intersection": intersection.build_layer,
    "linkage": linkage.build_layer,
}
