"""What the dial ``dimensions`` does to a party: the self-check at either of its ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray

from . import layouts, private_map, selfcheck
from .params import DcContext
from .selfcheck import Rebuilt

_LIMIT: Final = 0.5  # above it an upload of all dimensions is asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionReport:
    """Sentences for the operator, and why they have to agree before it is sent."""

    notes: dict[str, str] = field(default_factory=dict)
    asks: str = ""


def compare(
    context: DcContext,
    data: DataSource,
    drawn: FloatArray,
    fitted: private_map.FittedMap,
    rebuilt: Rebuilt,
) -> DimensionReport:
    """Return what is rebuilt with this end of the dial, beside the other end.

    drawn: float64 (r, m); the anchors.
    fitted, rebuilt: of the upload that is about to be sent.
    """
    if "transformer" in context.choices:
        return DimensionReport()  # the party's own, whatever the terms say
    if context.session.params.leaves_one_out:
        # of one dimension, which its party let go, nothing is left out
        return (
            _one_less(context, rebuilt)
            if fitted.width < fitted.rank
            else DimensionReport()
        )
    less = _with_one_less(context, data, drawn)
    other = (
        f"with 'all_but_one' it would be {less.sentence}"
        if less
        else "with 'all_but_one' such data would be refused: they have one dimension"
    )
    found = (
        f"an analyst with one party of your column group rebuilds {rebuilt.sentence}"
    )
    notes = {"  left out": f"nothing (dimensions 'all'): {found}; {other}."}
    if rebuilt.worst <= _LIMIT or "rebuild_limit" in context.choices:
        return DimensionReport(notes=notes)
    asks = (
        f"The terms leave no dimension out: {found}; {other}. Nothing of this was sent. "
        "Run again with --choice rebuild_limit=1 if it may leave."
    )
    return DimensionReport(notes=notes, asks=asks)


def _one_less(context: DcContext, rebuilt: Rebuilt) -> DimensionReport:
    linear = context.session.params.reduction != "autoencoder"
    other = "; with 'all' it would be every row" if linear else ""
    return DimensionReport(
        notes={
            "  left out": "one dimension (dimensions 'all_but_one'): an analyst with one "
            f"party of your column group rebuilds {rebuilt.sentence}{other}."
        }
    )


def _with_one_less(
    context: DcContext, data: DataSource, drawn: FloatArray
) -> Rebuilt | None:
    """Return what would be rebuilt of rows less one dimension; None where none is left."""
    if len(data.columns) < layouts.LEAST_WIDTH:
        return None
    given = {"dimensions": "all_but_one"}
    params = context.session.params.model_copy(update=given)
    try:
        fitted = private_map.fit(context, params, data)
    except GuardRefused:
        return None
    rows, images = fitted.function.rows(data), fitted.function(drawn)
    return selfcheck.score(matrix(data), selfcheck.rebuild(drawn, images, rows))
