"""What no check of a party rules out stands in the terms of every protocol that has it."""

from __future__ import annotations

from typing import Any

import pytest

from clustering_protocols import catalogue
from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.terms.terms import Layout

ALWAYS = "analyst-may-withhold-or-end"
OTHERS = {
    ALWAYS,
    "first-slot-chooses-secrets",
    "members-may-lie-or-be-invented",
}
MEMBER = "analyst-with-a-member-chooses-totals"
LABELS = "clusters-are-the-analysts-word"


@pytest.mark.parametrize(
    ("protocol", "cells", "params", "brought"),
    [
        ("llf", (3, 1), {}, {MEMBER}),
        ("llf", (3, 1), {"aggregation": "plain", "scaling": "none"}, set()),
        ("llf", (1, 3), {}, {LABELS}),
        ("fccm", (1, 3), {}, {MEMBER}),
        ("dc", (3, 1), {}, {MEMBER, LABELS}),
        ("dc", (2, 2), {}, {LABELS}),
        ("omnifc", (3, 1), {}, {MEMBER, LABELS}),
        ("omnifc", (3, 1), {"scaling": "minmax"}, {LABELS}),
        ("pqmds", (1, 3), {}, {LABELS}),
    ],
)
def test_a_session_brings_the_shared_risks_that_it_has(
    protocol: str, cells: tuple[int, int], params: dict[str, Any], brought: set[str]
) -> None:
    parsed = catalogue.parse_params(protocol, {"n_clusters": 2, **params})
    known, layout = catalogue.protocol(protocol), Layout.lattice(*cells)
    known.check(parsed, layout)
    found = [c for c in known.risks_of(parsed, layout) if c in shared_risks.RISKS]
    assert set(found) == OTHERS | brought
    assert len(set(found)) == len(found)


def test_who_is_alone_has_only_the_analyst_to_mistrust() -> None:
    found = shared_risks.brought(Layout.lattice(1, 1), totals=True, labels=True)
    assert set(found) == {LABELS, ALWAYS}
