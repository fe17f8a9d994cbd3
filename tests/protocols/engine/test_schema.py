"""A data dictionary is a Table Schema with the details that clustering needs."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from clustering_protocols.terms.schema import Field, Schema, parse_day_number

WARD: dict[str, Any] = {
    "fields": [
        {"name": "age", "type": "integer", "unit": "a", "title": "Age at admission"},
        {"name": "crp", "constraints": {"minimum": 0, "maximum": 500.5}},
        {"name": "smoker", "type": "boolean", "constraints": {"required": True}},
        {
            "name": "sex",
            "type": "integer",
            "categories": [{"value": 1, "label": "male"}, 2],
        },
        {
            "name": "grade",
            "type": "string",
            "categories": ["low", "high"],
            "categoriesOrdered": True,
            "missingValues": ["?", "-9"],
        },
        {"name": "ward", "type": "string", "constraints": {"enum": ["a", "b"]}},
        {"name": "day", "type": "date", "constraints": {"minimum": "1970-01-02"}},
    ],
    "missingValues": ["", "NA"],
}


def schema(**changes: Any) -> Schema:
    return Schema.model_validate_json(json.dumps(WARD | changes))


def field(**said: Any) -> Field:
    return Field.model_validate_json(json.dumps({"name": "x"} | said))


def test_a_dictionary_gives_levels_bounds_and_codes() -> None:
    ward = schema()
    assert ward.names == ("age", "crp", "smoker", "sex", "grade", "ward", "day")
    assert ward.field("crp").bounds == (0.0, 500.5)
    assert ward.field("day").bounds == (1.0, float("inf"))
    assert ward.field("sex").levels == ("1", "2")
    assert ward.field("sex").labels == ("male", "2")
    assert ward.field("ward").levels == ("a", "b")
    assert [f.name for f in ward.fields if f.is_category] == ["sex", "grade", "ward"]
    assert [f.name for f in ward.fields if f.is_ordinal] == ["grade"]
    assert ward.missing_codes(ward.field("age")) == {"", "NA"}
    assert ward.missing_codes(ward.field("grade")) == {"", "?", "-9"}
    with pytest.raises(KeyError):
        ward.field("weight")


def test_a_dictionary_is_written_as_read_without_defaults() -> None:
    written = json.loads(schema().model_dump_json())
    assert written["fields"][0] == WARD["fields"][0]
    assert written["fields"][3] == WARD["fields"][3]
    assert written["fields"][1] == {
        "name": "crp",
        "constraints": {"minimum": 0, "maximum": 500.5},
    }
    assert Schema.model_validate_json(schema().model_dump_json()) == schema()
    assert json.loads(Schema(fields=(Field(name="x"),)).model_dump_json()) == {
        "fields": [{"name": "x"}]
    }


def test_names_and_levels_are_compared_in_normal_form() -> None:
    assert field(name=" cafe\u0301 ").name == "caf\u00e9"
    assert field(type="string", categories=["e\u0301 ", "f"]).levels == ("\u00e9", "f")
    with pytest.raises(ValidationError, match="same name"):
        schema(fields=[{"name": "\u00e9"}, {"name": "e\u0301"}])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"name": ""}, "at least 1"),
        ({"name": " "}, "at least 1"),
        ({"name": "a\nb"}, "pattern"),
        ({"type": "duration"}, "type"),
        ({"type": "string"}, "needs levels"),
        ({"type": "number", "categories": [1, 2]}, "no levels"),
        ({"type": "string", "categories": ["a", "a "]}, "levels are the same"),
        ({"type": "string", "categories": ["1", {"value": 1}]}, "levels are the same"),
        (
            {"type": "string", "categories": ["a"], "constraints": {"enum": ["a"]}},
            "list the levels in",
        ),
        ({"categoriesOrdered": True}, "with categories"),
        (
            {"type": "string", "categories": ["NA"], "missingValues": ["NA"]},
            "among the missing",
        ),
        ({"constraints": {"minimum": 2, "maximum": 1}}, "above the maximum"),
        ({"constraints": {"minimum": "2026-01-01"}}, "bounds of dates"),
        ({"constraints": {"maximum": 10**400}}, "between -1e\\+100"),
        ({"type": "date", "constraints": {"minimum": 7}}, "bounds of dates"),
        ({"type": "date", "constraints": {"minimum": "2026-02-30"}}, "the form"),
        ({"type": "boolean", "constraints": {"minimum": 0}}, "for numbers and dates"),
        ({"constraints": {"minimum": True}}, "minimum"),
        ({"constraints": {"minimum": 10**400}}, r"between -1e\+100 and 1e\+100"),
        ({"constraints": {"maximum": 1e101}}, r"between -1e\+100 and 1e\+100"),
        ({"format": "any"}, "Extra inputs"),
        ({"constraints": {"pattern": "a*"}}, "Extra inputs"),
    ],
)
def test_a_field_that_contradicts_itself_is_refused(
    said: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        field(**said)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fields": []}, "at least 1"),
        ({"fields": [{"name": "x"}, {"name": "x"}]}, "same name"),
        ({"missingValues": ["low"]}, "among the missing"),
        ({"primaryKey": "age"}, "Extra inputs"),
    ],
)
def test_a_dictionary_that_contradicts_itself_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    ward = {**WARD["fields"][4]}
    ward.pop("missingValues")
    with pytest.raises(ValidationError, match=words):
        schema(**({"fields": [ward]} | changes))


@pytest.mark.parametrize("text", ["", "NaT", "2026-1-31", "31.01.2026", "2026-02-29"])
def test_what_is_no_date_has_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="the form 2026-01-31"):
        parse_day_number(text)
