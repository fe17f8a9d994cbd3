"""The generated parts of spec/ are as the code makes them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks import spec

REMEDY = (
    "{} is not what the code makes. Run: python -m benchmarks.spec. Then give each new "
    'label of spec/registry.toml a sentence (use = ""), and commit the files.'
)


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    return spec.generated()


def test_pages_and_registry_are_as_the_code_makes_them(
    generated: dict[Path, str],
) -> None:
    for path, text in generated.items():
        found = path.read_text() if path.exists() else ""
        assert found == text, REMEDY.format(path.name)
    for folder in {path.parent for path in generated} - {spec.SPEC}:
        assert {path for path in generated if path.parent == folder} == set(
            folder.iterdir()
        )


def test_each_label_has_one_version_and_a_sentence() -> None:
    for name, label in tomllib.loads(spec.REGISTRY.read_text())["labels"].items():
        assert label["use"].endswith("."), REMEDY.format(name)
        assert label["versions"] == [max(label["versions"])], name


def test_a_new_label_has_no_sentence_others_keep_theirs(tmp_path: Path) -> None:
    known = tmp_path / "registry.toml"
    known.write_text('[labels.mark]\nversions = [1]\nuse = "Kept."\n')
    labels = tomllib.loads(spec.registry(known))["labels"]
    assert labels["mark"]["use"] == "Kept."
    assert labels["mark"]["versions"] != [1]
    assert labels["pair"]["use"] == ""


def test_the_scan_finds_literal_composed_and_passed_names() -> None:
    names = {
        function: {name for name, _ in found}
        for function, found in spec.found_names().items()
    }
    assert {"word", "secret/{}"} <= names["stream"]
    assert {"tag/{}", "blind/{}", "{}"} <= names["group_stream"]
    assert {"group", "pair", "terms"} <= {name for name, _ in spec.found_labels()}
