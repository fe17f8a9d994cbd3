"""Rounded numbers show the axes of rows up to a motion, and the declaration says it."""

from __future__ import annotations

import pytest

from benchmarks.repeats import find_axes, matched, rows_of, turned
from clustering_protocols import catalogue
from clustering_protocols.contract.disclosures import Kind, Reader, kinds_of
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout


@pytest.mark.threat(157)
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_rounded_numbers_show_their_axes_and_the_table_says_so(name: str) -> None:
    rows = rows_of(name, most=200)
    Z = turned(rows, 0)
    assert set(matched(find_axes(Z, 20), Z, rows)) == set(range(rows.shape[1]))
    for params, layout in (
        (OmniFC(n_clusters=3), Layout.lattice(3)),
        (LosslessFederated(n_clusters=3), Layout.lattice(1, 3)),
    ):
        shown = catalogue.protocol_of(params).shows(params, layout)
        assert Kind.VALUES in kinds_of(shown, Reader.OUTSIDE)
