"""READMEs of protocols say in which stages parties seal envelopes for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.product import ROOT

from clustering_protocols import catalogue

SETUP = {"secrets", "alignment", "intersection", "linkage"}
"""Stages that all protocols share: one row of the table has them."""


def rows_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield stage and envelopes of each row of a README's table of rounds."""
    readme = ROOT / "clustering_protocols" / "protocols" / name / "README.md"
    _, _, table = readme.read_text().partition("| envelopes |\n")
    for line in table.partition("\n\n")[0].splitlines()[1:]:
        _, _, stage, _, envelopes, _ = line.split("|")
        yield stage.strip(), envelopes.strip()


@pytest.mark.parametrize("name", catalogue.catalogue())
def test_a_readme_names_the_stages_with_envelopes(name: str) -> None:
    known, rows = catalogue.protocol(name), list(rows_of(name))
    stages = [
        stage
        for example in known.reference().examples()
        for stage in known.stages(example.params, example.layout)
    ]
    sealing = {stage.name for stage in stages if stage.envelopes}
    for stage in {each.name for each in stages}:
        row = "setup" if stage in SETUP else stage
        said = [sealed for where, sealed in rows if where.startswith((row, stage))]
        assert (stage in sealing) == any(said), f"{name}: {stage}"
