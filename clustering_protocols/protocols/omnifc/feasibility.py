"""What is refused when a session is created, with the numbers that would work."""

from __future__ import annotations

from clustering_protocols.errors import InvalidParameters
from clustering_protocols.terms import Layout

from . import lagrange, quantisation, scaling, sizes
from .params import OmniFC


def check(params: OmniFC, layout: Layout) -> None:
    """Raise :class:`InvalidParameters` unless parameters and layout fit."""
    if layout.n_column_groups > 1:
        raise InvalidParameters(
            f"omnifc splits rows alone; the layout has {layout.n_column_groups} column "
            "groups."
        )
    _check_parties(params, len(layout.slots))
    _check_memory(params)
    if params.declared is not None and params.scaling != "unit_norm":
        quantisation.bits_for(params.bits, scaling.declared(params).ranges)


def _check_parties(params: OmniFC, parties: int) -> None:
    needed = lagrange.needed(params.segments, params.noise)
    if parties >= needed:
        return
    most = (parties + 1) // 2
    with_these = (
        f"{parties} parties suffice for segments + noise of at most {most}."
        if most >= 2
        else f"The least, segments = noise = 1, takes {lagrange.MIN_PARTIES}."
    )
    raise InvalidParameters(
        f"segments = {params.segments} and noise = {params.noise} need {needed} parties; "
        f"the layout has {parties}. {with_these}"
    )


def _check_memory(params: OmniFC) -> None:
    """Refuse a number of rows whose distances do not fit, features not counted."""
    needed = sizes.analyst_bytes(params, params.max_rows, n_features=1)
    if needed > params.memory_limit:
        most = sizes.most_rows(
            lambda n: sizes.analyst_bytes(params, n, 1), params.memory_limit
        )
        raise InvalidParameters(
            f"max_rows = {params.max_rows} takes {needed} bytes at the analyst; "
            f"memory_limit is {params.memory_limit}, room for max_rows = {most}."
        )
