"""Match keys that a table's columns make, and how well they link people made for it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.linkage_trial import try_match_keys
from clustering_protocols.shared_stages.alignment.match_keys import (
    key_columns,
    parse_match_key,
)
from party_sdk.lab.synthetic_people import make_hospitals
from party_sdk.tables import ReadOptions
from party_sdk.tables.linkage import (
    candidate_keys,
    linking_ids,
    person_columns,
    propose_match_keys,
)

FEBRL = Path(sys.prefix) / "febrl4"
Row = Mapping[str, str]


def write(path: Path, rows: Sequence[Row]) -> Path:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def proposed(path: Path) -> list[str]:
    return [
        each.key for each in propose_match_keys(path, ReadOptions()) if each.is_usable
    ]


def ids_of(paths: Sequence[Path], keys: Sequence[str]) -> tuple[list[str], list[str]]:
    first, second = (linking_ids(path, ReadOptions(), keys) for path in paths)
    return first, second


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (
            ["Vorname", "Nachname", "Geb.-Datum", "PLZ", "Ort"],
            {
                "given": "Vorname",
                "surname": "Nachname",
                "birth": "Geb.-Datum",
                "postcode": "PLZ",
                "city": "Ort",
            },
        ),
        (
            ["street_number", "address_1", "given_name", "date_of_birth"],
            {
                "house": "street_number",
                "street": "address_1",
                "given": "given_name",
                "birth": "date_of_birth",
            },
        ),
        (
            ["prénom", "nom", "sexe"],
            {"given": "prénom", "surname": "nom", "sex": "sexe"},
        ),
        (["glucose", "x"], {}),
    ],
)
def test_columns_are_known_by_their_names(
    names: list[str], roles: dict[str, str]
) -> None:
    assert person_columns(names) == roles


def test_keys_are_made_of_the_columns_that_there_are() -> None:
    keys = candidate_keys({"surname": "name", "birth": "born", "postcode": "plz"})
    assert len(keys) == 2
    for key in keys:
        assert key_columns([key]) <= ("name", "born", "plz")
        assert parse_match_key(key)


def test_a_key_that_rows_share_is_not_proposed(tmp_path: Path) -> None:
    rows = [
        {"surname": f"n{n}", "birth": f"19{n % 80 + 10}-01-01", "postcode": "1"}
        for n in range(400)
    ]
    found = propose_match_keys(write(tmp_path / "t.csv", rows), ReadOptions())
    serving = {each.key: each.is_usable for each in found}
    assert any("surname" in key for key, serves in serving.items() if serves)
    assert not any("surname" not in key for key, serves in serving.items() if serves)


@pytest.mark.parametrize("common", [0.5, 0.8, 1.0])
@pytest.mark.quick(1)
def test_proposed_keys_link_the_people_of_the_made_study(
    tmp_path: Path, common: float
) -> None:
    hospitals = make_hospitals(3000, common, seed=11)
    paths = [
        write(tmp_path / f"{place}.csv", each.cells)
        for place, each in enumerate(hospitals)
    ]
    keys, people = proposed(paths[0]), (hospitals[0].people, hospitals[1].people)
    found = try_match_keys(keys, ids_of(paths, keys), people)
    assert found.common == round(3000 * common)
    assert found.recall >= 0.95
    assert found.precision >= 0.999
    exact = try_match_keys(keys[:1], ids_of(paths, keys[:1]), people)
    assert exact.recall < found.recall - 0.1


@pytest.mark.skipif(not FEBRL.is_dir(), reason="FEBRL 4 is absent: make febrl")
@pytest.mark.parametrize(("apart", "recall"), [("none", 0.96), ("half", 0.91)])
def test_proposed_keys_link_febrl_4(tmp_path: Path, recall: float, apart: str) -> None:
    tables, people = [], []
    chosen = np.random.default_rng(0).permutation(5000)
    for place, name in enumerate("ab"):
        with (FEBRL / f"dataset4{name}.csv").open() as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
        who = np.array([int(row["rec_id"].split("-")[1]) for row in rows])
        own = chosen[2500:3750] if place == 0 else chosen[3750:]
        keep = np.isin(who, np.r_[chosen[:2500], own]) | (apart == "none")
        kept = [row for row, stays in zip(rows, keep, strict=True) if stays]
        for row in kept:
            del row["rec_id"], row["soc_sec_id"]
        tables.append(write(tmp_path / f"{name}.csv", kept))
        people.append(who[keep])
    keys = proposed(tables[0])
    found = try_match_keys(keys, ids_of(tables, keys), (people[0], people[1]))
    assert found.recall >= recall
    assert found.precision >= 0.999
