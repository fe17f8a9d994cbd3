"""The pages hang together: sections and labels."""

import re
import tomllib

import pytest

from benchmarks.spec import REGISTRY, SPEC

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
