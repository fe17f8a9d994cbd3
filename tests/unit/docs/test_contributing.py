"""What people are told who come with a change, or who cite: files and names are there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from clustering_protocols import catalogue

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
TOUR = (ROOT / "docs" / "architecture.md").read_text()
NAMED = {
    *re.findall(r"`([\w./-]+/[\w./-]*)`", GUIDE),
    *re.findall(r"`(\w+/[\w/]+(?:\.py|/))`", TOUR),
}
TARGETS = sorted(
    {t for line in re.findall(r"make ([a-z ]+)", GUIDE) for t in line.split()}
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PUBLIC = (
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / ".github").rglob("*") if path.is_file()),
    ROOT / "CITATION.cff",
    ROOT / "NOTICE",
    ROOT / "pyproject.toml",
)


def test_guide_and_tour_name_files_that_exist() -> None:
    assert len(NAMED) > 60
    assert not [name for name in NAMED if not (ROOT / name).exists()]


@pytest.mark.parametrize("target", [t for t in TARGETS if len(t) > 3])
def test_the_guide_names_targets_of_the_makefile(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_citation_has_this_version_and_every_protocol() -> None:
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["authors"] == PROJECT["authors"]
    noted = {each["notes"] for each in CITATION["references"]}
    protocols = {name for name, known in catalogue.catalogue().items() if known.paper}
    assert noted == {f"The protocol {name}." for name in protocols}


def test_public_forges_run_what_contributors_run_on_each_python() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    [job] = yaml.safe_load(text)["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    classifiers = "\n".join(PROJECT["classifiers"])
    versions = re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    assert job["strategy"]["matrix"]["python"] == versions


def test_who_wrote_it_is_said_alike_and_no_address_is_made_up() -> None:
    for name in ("LICENSE", "NOTICE"):
        assert "Copyright 2026 The Coterie developers" in (ROOT / name).read_text()
    assert "urls" not in PROJECT
    for path in PUBLIC:
        assert not re.search(r"example\.(org|com)|github\.com|pypi", path.read_text())
