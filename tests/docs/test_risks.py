"""docs/security.md names every risk code of the catalogue, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from clustering_protocols import catalogue
from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
OF_SEVERAL = {*shared_risks.RISKS, *row_alignment.RISKS, pooling.RISK_CODE}
OWN = {
    f"{name}.{code}"
    for name, known in catalogue.catalogue().items()
    if known.methods
    for code in known.risks
    if code not in {*OF_SEVERAL, *known.former_risks}
}
CODE = re.compile(r"`((?:[a-z]+\.)?[a-z]+(?:-[a-z]+){2,})`")


def test_every_code_has_its_place_and_every_place_its_code() -> None:
    listed = set(CODE.findall(PAGE.split("## What is not defended")[1]))
    assert listed == OWN | OF_SEVERAL


def test_each_of_what_remains_names_a_code() -> None:
    items = re.findall(r"^\d+\. (.*(?:\n +- .*)*)$", PAGE, re.MULTILINE)
    assert len(items) == 11
    assert all(CODE.search(item) or "the same code" in item for item in items)
