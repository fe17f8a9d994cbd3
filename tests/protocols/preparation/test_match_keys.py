"""Match keys: their text, what their steps do to cells, and refused keys."""

import pytest
from pydantic import ValidationError

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyPart,
    build_step_function,
    check_key_uniqueness,
    compute_key_values,
    parse_match_key,
)
from clustering_protocols.shared_stages.alignment.params import Alignment

USUAL = Alignment().normalisation
NAME = "given_name, surname | sorted-names + birth_date | year"


def values(key: str, *rows: tuple[str, ...]) -> list[str | None]:
    (found,) = compute_key_values([join_parts(row) for row in rows], [key], USUAL)
    return [None if v is None else v.replace("\x1f", "/") for v in found.values]


def test_a_key_has_parts_of_columns_and_steps() -> None:
    assert parse_match_key(NAME) == (
        KeyPart(("given_name", "surname"), ("sorted-names",)),
        KeyPart(("birth_date",), ("year",)),
    )


def test_an_alignment_is_written_like_any_other_parameter() -> None:
    named = {"method": "ecdh", "match_keys": ["a"]}
    alignment = Alignment.model_validate(named)
    assert alignment.model_dump(mode="json", exclude_defaults=True) == named
    assert alignment.model_dump().keys() == Alignment.model_fields.keys()


def test_keys_have_one_spelling_and_columns_one_order() -> None:
    said = Alignment(method="ecdh", match_keys=("b|first:3+a , b", "c"))
    assert said.match_keys == ("b | first:3 + a, b", "c")
    assert said.match_key_columns == ("b", "a", "c")


@pytest.mark.parametrize(
    "given",
    [
        {"match_keys": ["a"]},
        {"method": "ecdh", "match_keys": ["a | upper"]},
        {"method": "ecdh", "match_keys": ["a + "]},
        {"method": "ecdh", "match_keys": ["a + a"]},
        {"method": "ecdh", "match_keys": [" + ".join("abcdefghijklmnopq")]},
        {"method": "ecdh", "match_keys": ["a", " a"]},
        {"method": "ecdh", "match_keys": ["a"], "id_patterns": ["99"]},
        {"method": "ecdh", "match_keys": ["a | first:0"]},
        {"method": "ecdh", "match_keys": ["a"], "key_uniqueness": 1.1},
    ],
)
def test_keys_that_make_no_sense_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Alignment.model_validate(given)
    with pytest.raises(InvalidParameters):
        catalogue.parse_params("pqmds", {"n_clusters": 2, "alignment": given})


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        ("first:3", "meyer", "mey"),
        ("no-punctuation", "o'brien", "obrien"),
        ("digits", "nr. 12", "12"),
        ("zero-pad:4", "12", "0012"),
        ("transliterate", "müller", "muller"),
        ("transliterate", "иванов", "ivanov"),
        ("sorted-names", "van der meer, anna", "anna der meer van"),
        # the archives' own examples of Soundex
        ("soundex", "robert", "R163"),
        ("soundex", "rupert", "R163"),
        ("soundex", "ashcraft", "A261"),
        ("soundex", "tymczak", "T522"),
        ("metaphone", "metaphone", "MTFN"),
        ("metaphone", "müller", "MLR"),
        # Postel's own example of Cologne phonetics
        ("cologne", "müller-lüdenscheidt", "65752682"),
        ("cologne", "meyer", "67"),
        ("cologne", "maier", "67"),
        ("date", "19700131", "1970-01-31"),
        ("date", "20021231", "2002-12-31"),
        ("date", "3 days", ""),
        ("soundex", "12", ""),
        ("cologne", "h", ""),
    ],
)
def test_what_a_step_makes_of_a_text(step: str, text: str, expected: str) -> None:
    """Further dates are in the vectors of linkage in ``spec``."""
    assert build_step_function(step)(text) == expected


def test_swapped_names_have_one_value() -> None:
    one = values(NAME, ("Anna", "Schmidt", "1970-01-31"))
    assert one == ["anna schmidt/1970"]
    assert values(NAME, ("SCHMIDT", " anna", "31.01.1970")) == one


@pytest.mark.parametrize(
    "row", [("", "schmidt", "1970"), ("a", " ", "1970-01-31"), ("a", "b", "gone")]
)
def test_a_row_without_one_part_has_no_value(row: tuple[str, ...]) -> None:
    assert values(NAME, row) == [None]


def test_of_rows_that_share_a_value_none_has_one() -> None:
    rows = [("a", "b"), ("A", "b"), ("c", "d"), ("", "b")]
    assert values("x + y", *rows) == [None, None, "c/d", None]


def test_texts_of_two_parts_do_not_run_together() -> None:
    assert len(set(values("x + y", ("ab", "c"), ("a", "bc"), ("a\x1fb", "c")))) == 3


def test_a_cell_that_looks_like_a_list_is_one_text() -> None:
    assert values("x + y", ('["a","b"]', "c")) == ['["a","b"]/c']


def test_a_key_that_rows_share_is_refused_with_its_share() -> None:
    rows = [join_parts((str(n // 2 if n < 8 else n), str(n))) for n in range(16)]
    found = compute_key_values(rows, ["x", "y"], USUAL)
    assert [each.uniqueness for each in found] == [0.5, 1.0]
    check_key_uniqueness(found, 0.5)
    with pytest.raises(InvalidData, match=r"'x': 50\.0%\. Ask") as refused:
        check_key_uniqueness(found, 0.6)
    assert "'y'" not in str(refused.value)


def test_rows_of_other_columns_are_refused() -> None:
    with pytest.raises(InvalidData, match="the columns x, y of each row"):
        compute_key_values(["alone"], ["x + y"], USUAL)
