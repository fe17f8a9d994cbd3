"""`coterie table` and `coterie schema`, guards with their switches, and files written."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from support.terminal import coterie

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.party.party_session import PartySession
from party_sdk.results import output_files
from party_sdk.results.results import Result
from party_sdk.tables import CheckReport, Dialect, ReadOptions, open_table, read_table
from party_sdk.tables.drafts import draft_dictionary
from party_sdk.tables.variables import read_schema

WARD = Schema.model_validate(
    {
        "fields": [
            {"name": "sex", "type": "string", "categories": ["f", "m"]},
            {"name": "age", "type": "integer", "constraints": {"maximum": 120}},
            {"name": "crp", "missingValues": ["-9", "k.A."]},
            {"name": "smoker", "type": "boolean", "constraints": {"required": True}},
            {"name": "day", "type": "date"},
        ]
    }
)
HEADER = "patient;day;smoker;crp;age;sex"
LINES = ["a;02.01.1970;ja;1,5;30;m", "b;01.01.1970;nein;-9;;f", "c;;ja;k.A.;50; m"]


def table(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "ward.csv"
    path.write_text("\n".join([header, *lines, ""]))
    return path


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(WARD.model_dump_json())
    return path


@pytest.mark.parametrize(
    ("header", "lines", "hint"),
    [
        ("id;a;b", ["x;1.200,5;2,5", "y;3.400,7;3,5"], "'a': write thousands without"),
        ("id,a,b", ['x,"1,200.5",2.5', 'y,"3,400",3.5'], "separators of thousands"),
        ("id,a,b", ["x,1 200,2.5", "y,13 400,3.5"], "'a': write thousands without"),
        ("id,a,b", ["x,1 200 m,2.5", "y,13 400 m,3.5"], ""),
    ],
)
def test_numbers_with_separators_of_thousands_are_no_words(
    tmp_path: Path, header: str, lines: list[str], hint: str
) -> None:
    said = coterie("table", table(tmp_path, *lines, header=header), expect=5).output
    assert ("thousands" in said) == bool(hint)
    assert hint in said


def test_fields_come_as_the_dictionary_numbers_them(tmp_path: Path) -> None:
    path = table(tmp_path, *LINES)
    read = read_table(path, ReadOptions(id_column="patient", schema=WARD))
    [X] = read.batches()
    none = np.nan
    expected = [[1, 30, 1.5, 1, 1], [0, none, none, 0, 0], [1, 50, none, 1, none]]
    assert np.array_equal(X, expected, equal_nan=True)
    assert read.columns == WARD.names
    assert [c.missing for c in read.report.columns] == [0, 1, 2, 0, 1]
    assert list(read.ids or ()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("d;01.01.1970;ja;1;30;M", "sex: 'A' is not a level of the dictionary (did"),
        ("d;01.01.1970;ja;1;30;x", "sex: 'A' is not a level of the dictionary"),
        ("d;01.01.1970;ja;1;130;m", "age: above the dictionary's maximum"),
        ("d;01.01.1970;ja;1;30,5;m", "age: not a whole number"),
        ("d;01.01.1970;;1;30;m", "smoker: empty, and the dictionary requires"),
        ("d;01.01.1970;oui!;1;30;m", "smoker: 'AAA!' is neither yes nor no"),
        ("d;1970;ja;1;30;m", "day: '9999' is not a date in the order day-first"),
        ("d;01.01.1970;ja;?;30;m", "crp: '?' is not a number"),
    ],
)
def test_a_cell_that_contradicts_the_dictionary_is_told(
    tmp_path: Path, schema_file: Path, line: str, told: str
) -> None:
    path = table(tmp_path, *LINES, line)
    words = ("table", path, "--id-column", "patient", "--schema", schema_file)
    report = CheckReport.model_validate_json(coterie(*words, "--json", expect=5).stdout)
    [problem] = report.problems
    assert problem.to_sentence("line").startswith(f"line 5, {told}")


def test_all_kinds_of_problems_are_told_at_once_by_value(
    tmp_path: Path, schema_file: Path
) -> None:
    """Rejected lines, wrong levels, numbers and bounds together, and each line right."""
    lines = [
        "d;01.01.1970;ja;<0,1;30;w",
        "e;01.01.1970;ja",
        "f;01.01.1970;ja;?;200;w",
        "g;01.13.1970;vielleicht;<0,1;30;W",
        "h;01.01.1970;;1;30,5;m",
    ]
    path = table(tmp_path, *LINES, *lines)
    words = ("table", path, "--id-column", "patient", "--schema", schema_file)
    said = coterie(*words, expect=5).output
    assert f"{path.name}: 7 of 8 rows" in said
    problems = [line for line in said.splitlines() if line.startswith("problem:")]
    expected = [
        "day: '01.13.1970' (1) is not a date (first: line 8)",
        "smoker: 'vielleicht' (1) is neither yes nor no (first: line 8)",
        "smoker: '' (1) is empty, and the dictionary requires a value",
        "age: '30,5' (1) is not a whole number (first: line 9)",
        "crp: '<0,1' (2), '?' (1) are not numbers (first: line 5)",
        "age: '200' (1) is above the dictionary's maximum; allowed: at most 120",
        "sex: 'w' (2), 'W' (1) are not levels; allowed: f, m (first: line 5)",
        "line 6: fewer cells than the 6 columns",
    ]
    for sentence in expected:
        assert any(sentence in problem for problem in problems), sentence
    assert len(problems) == len(expected)
    with pytest.raises(InvalidData) as refused:
        read_table(path, ReadOptions(id_column="patient", schema=WARD))
    shown = "\n".join(refused.value.cells)
    assert all(sentence in shown for sentence in expected)
    for text in ("vielleicht", "<0,1"):
        assert text not in str(refused.value), "an error may end in a log"
        assert text not in repr(refused.value)
    hidden = coterie(*words, "--json", expect=5).stdout
    assert "vielleicht" not in hidden


def test_a_cell_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    rows = ["a;14,1;80", "b;14.2;", "c;13.9;70", "d;12.8;75"]
    path.write_text("\n".join(["id;hb;kg", *rows]))
    said = coterie("table", path, "--id-column", "id", expect=5).output
    assert "1 not readable" in said
    assert "line 3, kg: empty" in said
    assert "hb: empty" not in said
    assert "hb: '14,1' (1) is not a number" in said
    assert said.count("1 missing") == 1


def test_categories_wait_for_a_preparation(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="'sex' holds categories, and no preparation"):
        open_table(table(tmp_path, *LINES), id_column="patient", schema=WARD)


def test_a_dictionary_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"no dictionary 'none.json'"):
        read_schema(tmp_path / "none.json")
    path = tmp_path / "bad.json"
    path.write_text('{"fields": [{"name": "x", "typ": "number"}]}')
    with pytest.raises(
        InvalidData, match=r"fields number 1, typ: nothing has this name"
    ):
        read_schema(path)


def test_a_column_that_the_dictionary_lacks_is_named(tmp_path: Path) -> None:
    path = table(tmp_path, *LINES)
    with pytest.raises(InvalidData, match=r"does not describe 'agee'.*mean 'age'"):
        open_table(path, schema=WARD, columns=["agee"])
    path = table(tmp_path, "a;1", header="patient;aeg")
    with pytest.raises(InvalidData, match=r"no column 'sex'.*Did you mean 'aeg'\?"):
        open_table(path, schema=WARD)


def test_an_outlier_is_on_the_screen_and_in_no_document(tmp_path: Path) -> None:
    coded = [f"x{n};{n % 7}" for n in range(40)]
    path = table(tmp_path, *coded, "y;9999", "z;9999", header="patient;age")
    words = ("table", path, "--id-column", "patient")
    assert "9999 in 2 rows" in coterie(*words).output
    assert "9999" not in coterie(*words, "--json").stdout


def test_a_table_is_described(tmp_path: Path) -> None:
    path = table(tmp_path, *LINES)
    words = ("table", path, "--id-column", "patient", "--csv", "missing=k.A.")
    report = json.loads(coterie(*words, "--json", expect=5).stdout)
    assert (report["file"], report["rows"]) == ("ward.csv", 3)
    assert report["dialect"] == {
        "encoding": "utf-8",
        "delimiter": ";",
        "quote": '"',
        "decimal": ",",
        "dates": "day-first",
        "missing": ["k.A."],
    }
    assert [list(column.values()) for column in report["columns"]] == [
        ["day", "date", 1, 0, {}],
        ["smoker", "words", 0, 0, {}],
        ["crp", "number", 1, 0, {}],
        ["age", "integer", 1, 0, {}],
        ["sex", "words", 0, 0, {}],
    ], "no ranges, which are cells"
    said = coterie(*words, expect=5).output
    assert "ward.csv: 3 rows" in said
    assert "crp     number    -9 to 1.5                 1 missing" in said
    problem = "problem: crp: 'k.A.' (1) is not a number (first: line 4)"
    assert problem in coterie("table", path, expect=5).output


def test_rows_of_one_id_are_warned_of(tmp_path: Path) -> None:
    path = table(tmp_path, "a,1.5", "b,2", "a,7", header="id,x")
    said = coterie("table", path, "--id-column", "id").output
    assert "warning: Lines 2 and 4 have the same id." in said


def test_a_dialect_is_frozen_by_the_operator(tmp_path: Path) -> None:
    path = table(tmp_path, "a|1,5", "b|2,5", header="id|x")
    words = ("table", path, "--id-column", "id", "--json")
    frozen = ("--csv", "delimiter=|", "--csv", "decimal=.")
    assert not json.loads(coterie(*words).stdout)["problems"]
    report = json.loads(coterie(*words, *frozen, expect=5).stdout)
    assert report["dialect"]["decimal"] == "."
    assert "not a number: the decimal sign here is '.'" in report["problems"][0]["what"]
    with pytest.raises(InvalidParameters, match="names are encoding, delimiter"):
        Dialect.parse(["delimeter=;"])
    for wrong in ("delimiter=;;", "decimal=x", "skip=a", "encoding=x", "dates=now"):
        with pytest.raises(InvalidParameters):
            Dialect.parse([wrong])


def test_an_answer_without_a_terminal_writes_no_levels(tmp_path: Path) -> None:
    path = table(tmp_path, *LINES)
    said = coterie("schema", "infer", path, "--columns", "age,sex", given="y\n").stdout
    assert Schema.model_validate_json(said).used.names == ("age",)


def test_a_guard_has_a_switch(tmp_path: Path) -> None:
    large = table(tmp_path, "a,1.5,90071992547409930", "b,2.5,3", header="id,x,n")
    with pytest.raises(
        InvalidData, match="line 2, n: a whole number that loses digits"
    ):
        open_table(large, id_column="id")
    assert open_table(large, id_column="id", allow=["large-integers"]).n_rows == 2
    with pytest.raises(InvalidParameters, match="No guard is called 'all'"):
        open_table(large, allow=["all"])


def test_labels_of_a_study_become_levels_of_the_dictionary(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"sex": [1.0, 2, 2, None], "pain": [0.0, 3, 10, 4], "w": [1.5, 2, 3, 4]}
    )
    path = tmp_path / "study.sav"
    pyreadstat.write_sav(
        frame,
        str(path),
        column_labels={"sex": "Sex at birth"},
        variable_value_labels={
            "sex": {1: "male", 2: "female", 9: "other"},
            "pain": {0: "none", 10: "worst"},
        },
    )
    draft = draft_dictionary(path, ReadOptions(), lambda *_: False)
    schema = draft.to_schema()
    assert (draft.reasons, schema.names) == ({}, ("sex", "pain", "w"))
    sex, pain, _ = schema.fields
    assert (sex.title, sex.levels) == ("Sex at birth", ("1", "2", "9"))
    assert sex.labels == ("male", "female", "other")
    assert not pain.is_category, "only its ends have labels"
    how = ReadOptions(schema=schema, preparation=Preparation(missing="drop"))
    [X] = read_table(path, how).batches()
    assert X[:, 0].tolist()[:3] == [0, 1, 1]


def result(ids: list[str]) -> Result:
    source = MatrixSource(np.zeros((len(ids), 1)), ids=ids)
    return Result.of(Outcome(labels=np.arange(len(ids))), source)


def test_labels_keep_the_names_of_the_id_columns(tmp_path: Path) -> None:
    rows = ["1,a,1.5", "1,b,2", "2,a,7"]
    source = open_table(
        table(tmp_path, *rows, header="ward,label,x"), id_column=["ward", "label"]
    )
    path = Result.of(Outcome(labels=np.array([0, 1, 0])), source).save(
        tmp_path / "l.csv"
    )
    assert path.read_text().splitlines() == [
        '"ward","label","label_"',
        '"1","a",0',
        '"1","b",1',
        '"2","a",0',
    ]


def test_an_output_is_tried_before_the_run(tmp_path: Path) -> None:
    data = table(tmp_path, "a,1", header="id,x")
    for path in (tmp_path / "no" / "labels.csv", tmp_path):
        with pytest.raises(InvalidParameters, match="cannot be written"):
            output_files.check_outputs([path], data, force=True)
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    for path in (data, link):
        with pytest.raises(GuardRefused, match="is the table that is read"):
            output_files.check_outputs([path], data, force=False)
    output_files.check_outputs([data, None], data, force=True)


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    home, labels = PartySession(tmp_path / "home", "s", "a"), tmp_path / "labels.csv"
    output_files.refuse_overwriting([labels], home, force=False)
    labels.write_text("mine")
    with pytest.raises(GuardRefused, match="already exists"):
        output_files.refuse_overwriting([labels], home, force=False)
    with output_files.record_outputs([labels], home):
        labels.write_text("mine, and killed before it is noted")
        output_files.refuse_overwriting([labels], home, force=False)
    output_files.refuse_overwriting([labels], home, force=False)
    labels.write_text("changed since")
    with pytest.raises(GuardRefused, match="already exists"):
        output_files.refuse_overwriting([labels], home, force=False)
    output_files.refuse_overwriting([labels], home, force=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GuardRefused, match="already exists"):
        output_files.refuse_overwriting([tmp_path / "dangling"], None, force=False)


def test_a_file_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.sav").write_bytes(b"$FL2")
    for name in ("pyreadstat", "xlsxwriter"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidParameters, match=r"coterie\[statistics\]"):
        open_table(tmp_path / "rows.sav")
    with pytest.raises(InvalidParameters, match=r"coterie\[excel\]"):
        result(["a"]).save(tmp_path / "labels.xlsx")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept.csv"
    kept.write_text("precious")
    (tmp_path / "labels.csv").symlink_to(kept)
    result(["a"]).save(tmp_path / "labels.csv")
    assert kept.read_text() == "precious"
    assert not (tmp_path / "labels.csv").is_symlink()


@pytest.mark.parametrize("pairs", [0, 1, 2])
def test_one_pair_of_namesakes_leaves_the_best_key(tmp_path: Path, pairs: int) -> None:
    rng = np.random.default_rng(5)
    rows = [
        f"Vogt{row:03},Anna{row % 20},{1945 + row % 50}-0{1 + row % 9}-1{row % 10}"
        for row in range(400)
    ]
    rows[400 - pairs :] = rows[:pairs]
    codes = rng.permutation(np.arange(10_000, 99_999))[:400]
    lines = [
        f"{person},{code},{1000 + row}.5"
        for row, (person, code) in enumerate(zip(rows, codes, strict=True))
    ]
    path = tmp_path / "bank.csv"
    path.write_text("\n".join(["surname,given,birth,postcode,income", *lines]))
    keys = json.loads(coterie("table", path, "--link", "--json").stdout)
    serving = [key["key"] for key in keys if key["serves"]]
    assert any("postcode" not in key for key in serving)
