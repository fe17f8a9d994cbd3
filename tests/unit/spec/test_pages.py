"""The pages hang together: sections and labels."""

import re
import tomllib
from typing import Literal

import pytest

from benchmarks.spec import REGISTRY, SPEC
from clustering_protocols.catalogue import protocol
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout

BY_HAND = [
    path for path in SPEC.glob("*.md") if path.name not in {"calls.md", "example.md"}
]
TEXT = {path.name: path.read_text() for path in BY_HAND}


def test_each_section_stands_once() -> None:
    headings = [
        int(number)
        for text in TEXT.values()
        for number in re.findall(r"^## (\d+) ", text, re.MULTILINE)
    ]
    assert sorted(headings) == list(range(1, 16))
    listed = re.findall(r"^\| (\d+) ", TEXT["README.md"], re.MULTILINE)
    assert [int(number) for number in listed] == list(range(1, 16))


@pytest.mark.parametrize("page", TEXT)
def test_labels_are_those_of_the_registry(page: str) -> None:
    known = tomllib.loads(REGISTRY.read_text())["labels"]
    for name, version in re.findall(r"coterie/([a-z-]+)/(\d+)", TEXT[page]):
        assert known[name]["versions"] == [int(version)], name


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
def test_each_quality_measure_of_llf_is_specified(
    algorithm: Literal["cmeans", "fuzzy_cmeans"],
) -> None:
    params = LosslessFederated(n_clusters=2, algorithm=algorithm)
    for layout in (Layout.lattice(3, 1), Layout.lattice(1, 3)):
        for figure in protocol("llf").figures(params, layout):
            assert f"`{figure}`" in TEXT["llf.md"]
