"""The tables of who learns what follow from what protocols and releases declare."""

import pytest

from benchmarks import shown
from clustering_protocols import catalogue
from clustering_protocols.contract.disclosures import (
    Reader,
    disclosures_of_release,
    find_clashes,
    kinds_read_by,
)
from clustering_protocols.terms.sections import Release


def test_the_tables_are_those_that_the_declarations_give() -> None:
    for path, content in shown.pages().items():
        page = path.read_text()
        assert shown.written(page, content) == page, "run: make generated"


def test_every_protocol_and_release_has_its_line() -> None:
    lines = {way.name for way in shown.DEFAULTS}
    assert lines == catalogue.catalogue().keys(), "edit DEFAULTS of benchmarks/shown.py"
    said = [name for name, _ in shown.releases()]
    for readers in ("members", "everybody"):
        assert f"profiles `{readers}`" in said


def test_the_table_of_security_has_what_each_reader_of_an_example_gets() -> None:
    listed = {
        (way.name, reader, kinds_read_by(way.shown, reader))
        for way in (*shown.DEFAULTS, *shown.OTHERS)
        for reader in Reader
    }
    for name, known in catalogue.catalogue().items():
        for example in known.reference().examples():
            found = known.disclosures(example.params, example.layout)
            for reader in Reader:
                cell = (name, reader, kinds_read_by(found, reader))
                assert cell in listed, f"{shown.__file__}: no Way shows {cell}"


@pytest.mark.threat(155)
def test_no_example_that_is_accepted_clashes() -> None:
    for known in catalogue.catalogue().values():
        for example in known.reference().examples():
            kinds = known.disclosures(example.params, example.layout)
            kinds |= disclosures_of_release(
                example.sections.get("release"), example.layout
            )
            assert not list(find_clashes(kinds))


@pytest.mark.threat(155)
def test_outside_geometry_excludes_published_profiles() -> None:
    told = Release(profiles="everybody")
    refused = set()
    for way in (*shown.DEFAULTS, *shown.OTHERS):
        has_rows = "geometry" in kinds_read_by(way.shown, Reader.OUTSIDE)
        found = list(find_clashes(way.shown | disclosures_of_release(told, way.layout)))
        assert bool(found) == (has_rows and way.layout.can_pool(0))
        refused |= {way.name} if found else set()
        members = disclosures_of_release(Release(profiles="members"), way.layout)
        assert not list(find_clashes(way.shown | members))
    assert refused == {"dc", "omnifc"}
