"""A result for other programs: read back by pandas, pyreadstat and calamine."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from python_calamine import CalamineWorkbook
from support.analyst_process import Analyst

from party_sdk.results import exports
from party_sdk.results.exports import ExportColumn, write_export
from tests.faces.commands.test_reports import Desk, opened_by

N = 90
KINDS = np.repeat([0, 1, 2], [45, 30, 15])
FIELDS = [
    {"name": "age", "title": "Age at admission", "unit": "years", "type": "number"},
    {"name": "hba1c value", "type": "number"},
    {"name": "smoker", "type": "boolean"},
    {"name": "ward", "type": "string", "categories": ["surgery", "medicine"]},
    {"name": "died", "type": "boolean", "role": "describe"},
    {"name": "seen", "type": "date", "role": "describe"},
]


def test_only_formats_whose_library_is_installed_are_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert exports.installed_formats() == ("csv", "xlsx", "parquet", "sav", "dta")
    monkeypatch.setattr(exports, "find_spec", lambda _: None)
    assert exports.installed_formats() == ("csv", "parquet")


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), unit="D")
    frame = pd.DataFrame(
        {
            "id": [f"p{n:03}" for n in range(N)],
            "age": np.round(40 + 20 * KINDS + rng.normal(size=N), 1),
            "hba1c value": np.round(50 + 15 * KINDS + rng.normal(size=N), 1),
            "smoker": np.where(rng.random(N) < 0.4, "yes", "no"),
            "ward": np.where(rng.random(N) < 0.5, "surgery", "medicine"),
            "died": np.where(rng.random(N) < 0.2 + 0.2 * KINDS, "yes", "no"),
            "seen": days.strftime("%Y-%m-%d"),
        }
    )
    frame.loc[4, "died"] = ""
    return frame


@pytest.fixture(scope="module")
def ran(analyst_of_the_file: Analyst, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("exported")
    table().to_csv(folder / "rows.csv", index=False)
    wards = ("Wards", "--clusters", "3")
    desk = opened_by(analyst_of_the_file, folder, "s-exp", FIELDS, *wards)
    desk.run()
    desk("party", "report", "s-exp", "--name", "0=Young", "--name", "2=Old & ill")
    out = folder / "out"
    out.mkdir()
    for ending in ("csv", "xlsx", "parquet", "sav", "dta"):
        file = out / f"wards.{ending}"
        told = desk("party", "report", "s-exp", *desk.rows, "--out", file)
        assert f"{file} is written" in told
    return desk


@pytest.fixture(scope="module")
def out(ran: Desk) -> Path:
    return ran.folder / "out"


CALLED = ["cluster 0: Young", "cluster 1", "cluster 2: Old & ill"]


@pytest.mark.quick(1)
def test_clusters_are_numbered_by_size_and_have_their_names(
    ran: Desk, out: Path
) -> None:
    found = pd.read_csv(out / "wards.csv")
    assert found["cluster"].value_counts().tolist() == [45, 30, 15]
    assert [CALLED[label] for label in ran.labels()] == found["cluster"].tolist()


def test_the_text_holds_the_table_as_it_was(out: Path) -> None:
    found = pd.read_csv(out / "wards.csv")
    expected = pd.read_csv(out.parent / "rows.csv")
    assert list(found.columns) == [*expected.columns, "cluster"]
    pd.testing.assert_frame_equal(found[expected.columns], expected)


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_study_files_have_value_labels(out: Path, ending: str) -> None:
    read = getattr(pyreadstat, f"read_{ending}")
    frame, meta = read(str(out / f"wards.{ending}"))
    labels = meta.variable_value_labels
    assert labels["cluster"] == dict(enumerate(CALLED))
    assert labels["ward"] == {0: "surgery", 1: "medicine"}
    assert labels["smoker"] == {0: "no", 1: "yes"}
    expected = table()
    assert frame["ward"].map(labels["ward"]).tolist() == expected["ward"].tolist()
    assert "hba1c_value" in frame
    assert np.isnan(frame["died"][4])
    assert str(frame["seen"][0])[:10] == "2024-01-01"
    titles = dict(zip(meta.column_names, meta.column_labels, strict=True))
    assert titles["age"] == "Age at admission, years"
    assert titles["hba1c_value"] == "hba1c value"


def test_parquet_has_categories_and_sheets_have_words(out: Path) -> None:
    frame = pd.read_parquet(out / "wards.parquet")
    assert list(frame["cluster"].cat.categories) == CALLED
    book = CalamineWorkbook.from_path(str(out / "wards.xlsx"))
    rows = book.get_sheet_by_index(0).to_python()
    assert rows[0][-1] == "cluster"
    assert [row[-1] for row in rows[1:]] == frame["cluster"].astype(str).tolist()


def test_names_stand_in_the_report_and_nowhere_else(ran: Desk, out: Path) -> None:
    page = out.parent / "report.html"
    ran("party", "report", "s-exp", *ran.rows, "--out", page, "--force")
    assert "cluster 2: Old &amp; ill" in page.read_text()
    audit = ran("session", "audit", "s-exp")
    report = ran("session", "report", "s-exp", "--json")
    assert "Old &" not in audit + report


def test_another_table_and_files_that_are_there_are_refused(
    ran: Desk, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    table().iloc[::-1].to_csv(other, index=False)
    rows = ("--data", str(other), "--id-column", "id", "--out", tmp_path / "w.sav")
    ran("party", "report", "s-exp", *rows, expect=3)
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    ran("party", "report", "s-exp", *ran.rows, "--out", mine, expect=3)
    ran("party", "report", "s-exp", *ran.rows, "--out", tmp_path / "w.odd", expect=5)
    ran("party", "report", "s-exp", "--out", tmp_path / "w.sav", expect=2)
    assert not list(tmp_path.glob("w.*"))


@pytest.mark.threat(177)
def test_texts_of_others_begin_no_cell_like_a_formula(tmp_path: Path) -> None:
    ids = pa.array(["=own", "-1"])
    levels = {0: "=1+1", 1: "-5", 2: "@SUM(1)"}
    columns = [
        ExportColumn(name="id", values=ids, levels={}),
        ExportColumn(name="+ward", values=np.array([0.0, 2.0]), levels=levels),
        ExportColumn(name="dose", values=np.array([-1.5, np.nan]), levels={}),
    ]
    for ending in ("csv", "xlsx", "parquet"):
        write_export(tmp_path / f"rows.{ending}", columns)
    assert (tmp_path / "rows.csv").read_text().splitlines() == [
        '"id","\'+ward","dose"',
        '"=own","\'=1+1",-1.5',
        '"-1","\'@SUM(1)",',
    ]
    book = CalamineWorkbook.from_path(str(tmp_path / "rows.xlsx"))
    rows = book.get_sheet_by_index(0).to_python()
    assert rows[0] == ["id", "+ward", "dose"]
    assert rows[1] == ["=own", "=1+1", -1.5]
    assert pd.read_parquet(tmp_path / "rows.parquet")["+ward"].tolist() == [
        "=1+1",
        "@SUM(1)",
    ]


def test_a_sheet_has_dates(tmp_path: Path) -> None:
    seen = ExportColumn(name="seen", values=np.array([1.0]), levels={}, is_date=True)
    write_export(tmp_path / "rows.xlsx", [seen])
    book = CalamineWorkbook.from_path(str(tmp_path / "rows.xlsx"))
    assert book.get_sheet_by_index(0).to_python()[1] == [date(1970, 1, 2)]


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_reserved_words_become_other_names(tmp_path: Path, ending: str) -> None:
    names = ["if", "int", "long", "with", "using", "byte", "str8", "strL", "By", "NOT"]
    names += ["all", "and", "double", "eq", "float", "ge", "in", "to", "_n", "_pi"]
    write_export(
        tmp_path / f"rows.{ending}",
        [ExportColumn(name=name, values=np.zeros(1), levels={}) for name in names],
    )
    frame, _ = getattr(pyreadstat, f"read_{ending}")(str(tmp_path / f"rows.{ending}"))
    assert list(frame)[:3] == ["v_if", "v_int", "v_long"]
    assert len(frame.columns) == len(names)


def test_a_name_that_does_not_fit_is_refused(ran: Desk) -> None:
    ran("party", "report", "s-exp", "--name", "7=Far", expect=5)
    ran("party", "report", "s-exp", "--name", "one=B", expect=2)
    names = json.loads(ran("party", "report", "s-exp", "--json"))["names"]
    assert names == ["Young", "", "Old & ill"]


def test_names_are_read_from_a_file_and_written_to_one(
    ran: Desk, tmp_path: Path
) -> None:
    written = tmp_path / "names.json"
    ran("party", "report", "s-exp", "--names", written)
    assert json.loads(written.read_text()) == {"0": "Young", "1": "", "2": "Old & ill"}
    written.write_text('{"1": "SIDD"}')
    read = ran("party", "report", "s-exp", "--names", written, "--json")
    assert json.loads(read)["names"][1] == "SIDD"
    ran("party", "report", "s-exp", "--name", "1=")
    written.write_text('{"1": 7}')
    ran("party", "report", "s-exp", "--names", written, expect=5)
