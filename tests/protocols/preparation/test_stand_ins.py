"""Cells that stand for missing values link nobody; frequent genuine values do."""

import re

import numpy as np
import pandas as pd
import pytest
from support.product import ROOT

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.shared_stages.alignment.cell_values import (
    _WORDS,
    find_frequent_stand_ins,
    missing_ids_note,
    rows_without_id,
)
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.shared_stages.alignment.match_keys import compute_key_values
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.tables.linkage import candidate_keys, person_columns, propose_match_keys
from party_sdk.tables.read_options import ReadOptions

USUAL = Alignment().normalisation


def birth_dates(n: int) -> list[str]:
    days = np.random.default_rng(0).integers(0, 20_000, n)
    return list(map(str, np.datetime64("1945-01-01") + days.astype("timedelta64[D]")))


@pytest.mark.parametrize("word", ["unknown", "NaN", "NA", " null ", "N/A", "Unbekannt"])
def test_words_for_no_value_are_no_ids(word: str) -> None:
    assert rows_without_id(["P1", word, join_parts(["a", word]), "Nadia"]) == [1, 2]


def test_the_page_and_the_party_in_typescript_have_the_same_words() -> None:
    client = ROOT / "clients/typescript/src/alignment/stand-ins.ts"
    for page, sign in ((ROOT / "spec/alignment.md", "`"), (client, r"[|\"]")):
        assert not _WORDS - set(re.split(sign, page.read_text())), page.name


def test_zeros_alone_are_no_id_unless_ids_count_from_them() -> None:
    assert rows_without_id(["00000000", "00004711", "0"]) == [0]
    assert rows_without_id(["000", "003", "002"]) == []
    assert rows_without_id(["0000", "0099", "4711"]) == []


def test_rows_without_an_id_are_counted_and_never_named() -> None:
    assert missing_ids_note(["a", "b"]) == ""
    assert missing_ids_note(["a", "unknown", "NULL"]).startswith("2 rows have ids")


@pytest.mark.parametrize(
    ("stand_in", "n"),
    [("1900-01-01", 4), ("01.01.1900", 8), ("2999-01-01", 4), ("0000", 9)],
)
@pytest.mark.parametrize("n_rows", [60, 800])
def test_a_value_in_far_more_rows_than_all_others_is_none(
    stand_in: str, n: int, n_rows: int
) -> None:
    n = max(n, n_rows // 20)
    texts = birth_dates(n_rows) if len(stand_in) > 4 else list(map(str, range(n_rows)))
    assert find_frequent_stand_ins([stand_in] * n + texts) == {stand_in}


def test_several_dates_for_none_are_found_in_a_large_table() -> None:
    texts = birth_dates(60_000) + ["1900-01-01"] * 2_000 + ["1901-01-01"] * 1_000
    assert find_frequent_stand_ins(texts) == {"1900-01-01", "1901-01-01"}
    assert not find_frequent_stand_ins(birth_dates(60_000))


@pytest.mark.parametrize(
    "texts",
    [
        ["anna"] * 5 + [f"name {'x' * n}" for n in range(30)],
        ["10115"] * 300 + [f"{12000 + n}" for n in range(30)],
        ["10115"] * 90 + [f"{12000 + n % 20}" for n in range(120)],
        ["2015-03-01"] * 3 + birth_dates(40),
        ["1900-01-01"] * 40,
    ],
    ids=["a name", "the own town", "villages", "triplets", "one value"],
)
def test_what_is_frequent_by_nature_still_names(texts: list[str]) -> None:
    assert not find_frequent_stand_ins(texts)


def test_a_key_counts_rows_that_a_stand_in_leaves_without_a_value() -> None:
    dates = [*birth_dates(40), *["1900-01-01"] * 4]
    rows = [join_parts((f"name {chr(97 + n)}", date)) for n, date in enumerate(dates)]
    rows.append(join_parts(("unknown", "1950-01-01")))
    by_date, by_name = compute_key_values(rows, ["name + birth | date", "name"], USUAL)
    assert by_date.values[40:] == [None] * 5
    assert (by_date.n_stand_ins, by_name.n_stand_ins) == (5, 1)
    assert by_name.values[40] is not None


def test_linkage_by_ids_leaves_rows_without_ids_out() -> None:
    data = MatrixSource(np.zeros((3, 1)), ids=["a", "unknown", "c"])
    assert Alignment(method="ecdh").identify_rows(data).rows.tolist() == [0, 2]
    assert len(Alignment().identify_rows(data).ids) == 3
    with pytest.raises(InvalidData, match="Row 2 has no id"):
        Alignment(method="ecdh").identify_rows(
            MatrixSource(np.zeros((3, 1)), ids=["a", "", "c"])
        )


def test_phonetics_of_german_names_are_proposed_for_german_headings() -> None:
    assert candidate_keys(person_columns(["Nachname", "Vorname", "Geburtsdatum"]))
    table = pd.DataFrame(
        {
            "Nachname": ["Müller", "Schmitz", "Weiß"],
            "Vorname": ["Anna", "Jörg", "Uwe"],
            "Geburtsdatum": birth_dates(3),
        }
    )
    german = [each.key for each in propose_match_keys(table, ReadOptions())]
    english = [
        each.key
        for each in propose_match_keys(
            table.set_axis(["surname", "given", "birth"], axis=1), ReadOptions()
        )
    ]
    assert any("cologne" in key for key in german)
    assert not any("soundex" in key for key in german)
    assert any("soundex" in key for key in english)
