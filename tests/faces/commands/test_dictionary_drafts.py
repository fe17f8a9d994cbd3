"""Dictionaries that people write: as rows, by options, through a spreadsheet."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from support.terminal import coterie

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions
from party_sdk.tables.drafts import draft_dictionary
from party_sdk.tables.variables import (
    DictionaryDraft,
    Variable,
    read_draft,
    read_schema,
)

SCHEMA = Schema.model_validate(
    {
        "missingValues": ["", "k.A."],
        "fields": [
            {
                "name": "hba1c",
                "title": "HbA1c",
                "unit": "mmol/mol",
                "decimals": 1,
                "constraints": {"minimum": 20, "maximum": 200.5, "required": True},
            },
            {"name": "since", "type": "date", "constraints": {"minimum": "2001-02-03"}},
            {
                "name": "sex",
                "type": "integer",
                "categories": [{"value": 1, "label": "male, born"}, {"value": 2}],
            },
            {
                "name": "stage",
                "type": "string",
                "role": "describe",
                "categories": ["I", "=II", "a=b", "c, d", 'e"f', "g\\h"],
                "categoriesOrdered": True,
                "missingValues": ["?", "-"],
                "description": "As of 2020",
            },
            {"name": "died", "type": "boolean", "role": "describe"},
            {"name": "=note", "type": "string", "role": "leave-out"},
        ],
    }
)


def same(one: Schema, other: Schema) -> bool:
    """Return whether two dictionaries read every cell alike."""
    codes = [
        [schema.missing_codes(field) for field in schema.fields]
        for schema in (one, other)
    ]
    bare = [
        [
            field.model_copy(update={"missingValues": None, "categories": ()})
            for field in schema.fields
        ]
        for schema in (one, other)
    ]
    levels = [
        [(field.levels, field.labels) for field in schema.fields]
        for schema in (one, other)
    ]
    return codes[0] == codes[1] and bare[0] == bare[1] and levels[0] == levels[1]


def test_a_dictionary_comes_back_from_its_rows_and_from_csv(tmp_path: Path) -> None:
    draft = DictionaryDraft.from_schema(SCHEMA)
    assert same(draft.to_schema(), SCHEMA)
    path = tmp_path / "variables.csv"
    path.write_text(draft.to_csv(), encoding="utf-8-sig", newline="")
    assert same(read_draft(path).to_schema(), SCHEMA)
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert frame["name"].tolist()[:3] == ["hba1c", "since", "sex"]
    assert frame["name"].tolist()[-1] == "'=note", "no spreadsheet computes it"
    # a German spreadsheet saves it anew, with its columns in another order
    again = tmp_path / "again.csv"
    text = frame[sorted(frame)].replace({"200.5": "200,5"})
    text.to_csv(again, sep=";", index=False, encoding="cp1252")
    assert same(read_draft(again).to_schema(), SCHEMA)


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=9
)


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5, unique=True), texts)
def test_any_levels_come_back(levels: list[str], name: str) -> None:
    schema = Schema.model_validate(
        {
            "fields": [
                {
                    "name": name,
                    "type": "string",
                    "missingValues": [],
                    "categories": [
                        {"value": level, "label": f"{level}={place},"}
                        for place, level in enumerate(levels)
                    ],
                }
            ]
        }
    )
    found = DictionaryDraft.from_schema(schema).to_schema()
    assert found.fields[0].levels == schema.fields[0].levels
    assert found.fields[0].labels == schema.fields[0].labels


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"minimum": "low"}, "minimum: give a number"),
        *(
            ({"type": "integer", "maximum": text}, "maximum: give a whole number")
            for text in ("nan", "1e400")
        ),
        ({"type": "integer", "maximum": "9" * 400}, "A bound must be between"),
        ({"minimum": "30", "maximum": "20"}, "The minimum is above the maximum"),
        ({"type": "numeric"}, "type: give"),
        ({"type": "string"}, "A string needs levels"),
        ({"role": "outcome"}, "role: give"),
        ({"decimals": "two"}, "decimals: give a whole number"),
        ({"required": "perhaps"}, "required: write yes or no"),
        ({"type": "integer", "levels": "1,b"}, "levels: give a whole number"),
        ({"levels": "a,b", "type": "string", "missing": "a"}, "among the missing"),
        ({"name": "since"}, "another row has this name"),
        ({"type": "date", "minimum": "03.02.2001"}, "2026-01-31"),
    ],
)
def test_what_is_wrong_is_said_of_its_row(change: dict[str, str], said: str) -> None:
    good = Variable(name="hba1c", unit="mmol/mol")
    rows = (Variable(name="since", type="date"), replace(good, **change))
    draft = DictionaryDraft(variables=rows)
    assert draft.faults().keys() == {2}
    assert said in draft.faults()[2]
    with pytest.raises(InvalidData, match="row 2"):
        draft.to_schema()


def test_nothing_is_guessed_to_be_an_outcome(tmp_path: Path) -> None:
    rows = [
        f"p{n},{n / 7},{n % 2},w{n % 3},remark {n},{3 * n + n % 2},,{n % 28 + 1:02}/09/22"
        for n in range(60)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["id,hba1c,died,ward,remark,running,empty,born", *rows]))
    draft = draft_dictionary(path, ReadOptions(id_column="id"), lambda *_: False)
    roles = {row.name: row.role for row in draft.variables}
    assert roles == {
        "hba1c": "cluster",
        "died": "cluster",
        "ward": "leave-out",
        "remark": "leave-out",
        "running": "leave-out",
        "empty": "leave-out",
        "born": "leave-out",
    }
    assert draft.reasons.keys() == {"ward", "remark", "running", "empty", "born"}
    assert "two-digit years" in draft.reasons["born"]
    assert "more than 50" in draft.reasons["remark"]
    assert "rise row by row" in draft.reasons["running"]
    assert "no value" in draft.reasons["empty"]
    bounds = draft.to_schema().field("hba1c").constraints
    assert (bounds.minimum, bounds.maximum) == (None, None), "they would tell of rows"
    levelled = draft_dictionary(path, ReadOptions(id_column="id"), lambda *_: True)
    assert levelled.to_schema().field("ward").levels == ("w0", "w1", "w2")


ROWS = "patient,age,crp,sex,died\nP1,53,8.69,m,0\nP2,55,4.5,f,1\nP3,72,9.69,m,0\n"


def test_a_draft_is_completed_by_options_and_in_a_spreadsheet(tmp_path: Path) -> None:
    path, out, sheet = (tmp_path / name for name in ("lab.csv", "lab.json", "v.csv"))
    path.write_text(ROWS)
    words = ["schema", "infer", path, "--id-column", "patient", "--out", out]
    words += ["--csv-out", sheet, "--describe", "died", "--leave-out", "age"]
    words += ["--levels", "sex=m=male,f=female"]
    coterie(*words)
    found = read_schema(out)
    assert [field.role for field in found.fields] == [
        "leave-out", "cluster", "leave-out", "describe",
    ]  # fmt: skip
    assert found.field("sex").labels == ("male", "female")
    coterie("table", path, "--id-column", "patient", "--schema", out)

    frame = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    cells = {"role": "describe", "unit": "years", "maximum": "120"}
    for column, text in cells.items():
        frame.loc[frame["name"] == "age", column] = text
    frame.to_csv(sheet, index=False)
    coterie("schema", "build", sheet, "--out", out, expect=3)  # it is there already
    built = Schema.model_validate_json(coterie("schema", "build", sheet).stdout)
    assert built.described_names == ("age", "died")
    assert built.field("age").constraints.maximum == 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--describe", "dead"], "There is no variable 'dead'. Did you mean"),
        (["--describe", "died", "--leave-out", "died"], "has two roles"),
        (["--levels", "crp"], "--levels takes NAME=VALUE"),
    ],
)
def test_an_option_that_does_not_fit_writes_nothing(
    tmp_path: Path, words: list[str], said: str
) -> None:
    path, out = tmp_path / "lab.csv", tmp_path / "lab.json"
    path.write_text(ROWS)
    ran = coterie("schema", "infer", path, "--out", out, *words, expect=5)
    assert said in " ".join(ran.output.split())
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a column 'name'"),
        ("unit,type\nmg/l,number\n", "needs a column 'name'"),
        ("name,name\na,b\n", "distinct column names"),
        ("name,rolle\na,cluster\n", "has a column 'rolle'.*Did you mean 'role'"),
        ("name,role\n,\n", "has no variables"),
        ('name,role\n"a,cluster\n', "not a CSV file"),
        (f"name,levels\na,{'x' * 200_000}\n", "131,072"),
    ],
)
def test_a_file_that_is_no_table_of_variables_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "variables.csv"
    path.write_text(text)
    with pytest.raises(InvalidData, match=f"(?s){said}"):
        DictionaryDraft.read_csv(path)


def test_a_variable_that_is_not_there_is_not_changed() -> None:
    draft = DictionaryDraft.from_schema(SCHEMA)
    with pytest.raises(InvalidParameters, match="hba1c"):
        draft.with_changes({"hba1": {"role": "describe"}})
