"""The generated parts of spec/ are as the code makes them."""

import tomllib
from pathlib import Path

import pytest

from benchmarks import spec

REMEDY = (
    "{} is not what the code makes. Run: make generated. Then give each new "
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
