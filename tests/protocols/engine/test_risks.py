"""Risks: one sentence each, three levels, and defaults that avoid what they can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.terms.session_risks import RiskLevel, worst_first
from clustering_protocols.terms.terms import Layout

LAYOUTS = {
    "horizontal": Layout.lattice(4, 1),
    "vertical": Layout.lattice(1, 4),
    "mixed": Layout.lattice(4, 4),
}
SPLITS = [
    (name, split)
    for name, known in catalogue.catalogue().items()
    if known.methods
    for split in known.partitionings
]
NOT_BY_A_DEFAULT = {
    ("llf", "horizontal"): {"start-shows-own-clusters"},  # 'bounds' needs a dictionary
}
"""Risks that another value avoids at the price of other clusters."""
ALL = catalogue.house_risks() | {
    code: risk
    for name in catalogue.catalogue()
    for code, risk in catalogue.known_risks(name).items()
}


@pytest.mark.parametrize("code", ALL)
def test_a_risk_is_one_sentence_of_at_most_25_words(code: str) -> None:
    risk = ALL[code]
    assert len(risk.sentence.split()) <= 25
    assert re.fullmatch(r"[A-Z][^.?!]*\.", risk.sentence)
    assert not risk.measured or re.search(r"\d|quarter", risk.measured)
    assert risk.remedy


def test_codes_are_few_enough_to_be_read() -> None:
    assert len(ALL) <= 45
    for name, split in SPLITS:
        params = catalogue.protocol(name).params(n_clusters=3)
        assert len(brought_by(params, split)) <= 4
        assert "house.by-design" in brought_by(params, split)


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_what_is_so_by_design_has_one_code_with_a_table(name: str, split: str) -> None:
    known = catalogue.protocol(name)
    brought = brought_by(known.params(n_clusters=3), split)
    own = [known.risks[code] for code in brought if code in known.risks]
    (design,) = (risk for risk in own if risk.level is RiskLevel.DESIGN)
    assert {"analyst", "party", "coordinator"} <= dict(design.readers).keys()


def test_the_worst_risk_comes_first() -> None:
    ordered = list(worst_first(ALL).values())
    assert [risk.harm for risk in ordered] == sorted(risk.harm for risk in ordered)


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_no_other_value_avoids_a_risk_of_the_defaults(name: str, split: str) -> None:
    kind = catalogue.protocol(name).params
    usual = brought_by(kind(n_clusters=3), split)
    avoided: set[str] = set()
    for changed in other_values(kind):
        try:
            brought = brought_by(kind(n_clusters=3, **changed), split)
        except (InvalidParameters, ValueError):
            continue
        if brought < usual:
            avoided |= usual - brought
    assert avoided == NOT_BY_A_DEFAULT.get((name, split), set())


def brought_by(params: Params, split: str) -> set[str]:
    """The codes that a new session of these parameters brings."""
    layout, known = LAYOUTS[split], catalogue.protocol_of(params)
    known.check(params, layout)
    known.check_opening(params, layout)
    params.check_retired()
    return set(known.risks_of(params, layout))


def other_values(kind: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Each parameter with each value of a few; of parts, each of theirs."""
    for name, info in kind.model_fields.items():
        annotation = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from ({name: part} for part in other_values(annotation))
        elif annotation is bool:
            yield from ({name: value} for value in (False, True))
        elif annotation is int and name != "n_clusters":
            yield from ({name: value} for value in (1, 2, 3, 5))
        for each in (annotation, *get_args(annotation)):
            if get_origin(each) is Literal:
                yield from ({name: value} for value in get_args(each))
