"""A result for other programs: read back by pandas, pyreadstat and calamine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from python_calamine import CalamineWorkbook
from support.analyst_process import Analyst
from support.needs import R, leave_out

from party_sdk.results.exports.r_scripts import r_script
from tests.sdk.test_reports import Desk

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
    """A session of one party that has its labels."""
    folder = tmp_path_factory.mktemp("exported")
    table().to_csv(folder / "rows.csv", index=False)
    (folder / "rows.json").write_text(json.dumps({"fields": FIELDS}))
    environment = {
        "COTERIE_URL": analyst_of_the_file.url,
        "COTERIE_KEY": analyst_of_the_file.key,
        "COTERIE_HOME": str(folder / "home"),
    }
    blank = Desk(folder, environment, "s-exp", "", (), ())
    said = json.loads(
        blank(
            *("session", "create", "Wards", "--id", "s-exp", "--protocol", "dc"),
            *("--param", "n_clusters=3", "--seed", "1", "--json"),
            *("--schema", folder / "rows.json", "--profiles", "members"),
        )
    )
    accepted = [word for code in said["risks"] for word in ("--accept-risk", code)]
    desk = blank._replace(
        invitation=said["invitations"]["r1c1"],
        accept=tuple(accepted),
        rows=("--data", str(folder / "rows.csv"), "--id-column", "id"),
    )
    desk.run()
    desk("party", "name", "s-exp", "--name", "0=Young", "--name", "2=Old & ill")
    out = folder / "out"
    kinds = [
        w for f in ("csv", "xlsx", "parquet", "sav", "dta") for w in ("--format", f)
    ]
    told = desk("party", "export", "s-exp", *desk.rows, "--out", out, *kinds, "--json")
    assert len(json.loads(told)["files"]) == 8
    return desk


@pytest.fixture(scope="module")
def out(ran: Desk) -> Path:
    return ran.folder / "out"


CALLED = ["cluster 0: Young", "cluster 1", "cluster 2: Old & ill"]


def test_clusters_are_numbered_by_size_and_have_their_names(
    ran: Desk, out: Path
) -> None:
    found = pd.read_csv(out / "s-exp-r1c1-table.csv")
    assert found["cluster"].value_counts().tolist() == [45, 30, 15]
    assert [CALLED[label] for label in ran.labels()] == found["cluster"].tolist()


def test_the_text_holds_the_table_as_it_was(out: Path) -> None:
    found = pd.read_csv(out / "s-exp-r1c1-table.csv")
    expected = pd.read_csv(out.parent / "rows.csv")
    assert list(found.columns) == [*expected.columns, "cluster"]
    pd.testing.assert_frame_equal(found[expected.columns], expected)


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_study_files_have_value_labels(out: Path, ending: str) -> None:
    read = getattr(pyreadstat, f"read_{ending}")
    frame, meta = read(str(out / f"s-exp-r1c1-table.{ending}"))
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
    frame = pd.read_parquet(out / "s-exp-r1c1-table.parquet")
    assert list(frame["cluster"].cat.categories) == CALLED
    book = CalamineWorkbook.from_path(str(out / "s-exp-r1c1-table.xlsx"))
    rows = book.get_sheet_by_index(0).to_python()
    assert rows[0][-1] == "cluster"
    assert [row[-1] for row in rows[1:]] == frame["cluster"].astype(str).tolist()


def test_the_profile_is_that_of_pandas(out: Path) -> None:
    """Of the own rows, to which the one party of this session's profile belongs."""
    found = pd.read_csv(out / "s-exp-r1c1-profile.csv")
    rows = pd.read_csv(out / "s-exp-r1c1-table.csv")
    by_cluster = rows.groupby("cluster")["age"]
    ages = found[found["variable"] == "age"].set_index("cluster")
    np.testing.assert_allclose(ages["mean"], by_cluster.mean()[ages.index], rtol=1e-6)
    np.testing.assert_allclose(
        ages["standard_deviation"], by_cluster.std(ddof=0)[ages.index], rtol=1e-6
    )
    shares = found[(found["variable"] == "ward") & (found["level"] == "surgery")]
    own = (rows["ward"] == "surgery").groupby(rows["cluster"]).mean()
    np.testing.assert_allclose(
        shares.set_index("cluster")["share"], own[shares["cluster"]], rtol=1e-6
    )
    died = found[(found["variable"] == "died") & (found["level"] == "yes")]
    assert (died["interval_low"] < died["share"]).all()
    assert (died["share"] < died["interval_high"]).all()
    assert found["unit"][found["variable"] == "age"].unique().tolist() == ["years"]


def test_the_script_names_files_and_columns_that_are_there(out: Path) -> None:
    script = (out / "s-exp-r1c1.R").read_text()
    for name in re.findall(r'read\.csv\("([^"]+)"', script):
        assert (out / name).is_file()
    profile = pd.read_csv(out / "s-exp-r1c1-profile.csv")
    columns = re.search(r'c\("variable"[^)]*\)', script)
    assert columns is not None
    assert set(re.findall(r'"(\w+)"', columns[0])) <= set(profile.columns)
    for called in CALLED:
        assert json.dumps(called) in script


def run_r(script: Path, locale: str = "C.UTF-8") -> str:
    """Run a script in its folder, and return what it prints."""
    program = shutil.which("Rscript")
    if program is None:
        leave_out(R, "exported scripts are not run")
    done = subprocess.run(
        [program, "--vanilla", script.name],
        cwd=script.parent,
        env={"PATH": os.environ["PATH"], "LC_ALL": locale},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_the_script_runs_and_reads_what_was_exported(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    script = tmp_path / "s-exp-r1c1.R"
    with script.open("a") as file:
        file.write(
            "write.csv(data.frame(n = tapply(rows$age, rows$cluster, length), "
            'age = tapply(rows$age, rows$cluster, mean)), "read.csv")\n'
            'stopifnot(identical(rows[["ward"]][1], "surgery") ||'
            ' identical(rows[["ward"]][1], "medicine"), is.na(rows$died[5]),'
            ' is.numeric(rows[["hba1c value"]]), is.numeric(profile$mean))\n'
        )
    printed = run_r(script)
    for called, size in zip(CALLED, (45, 30, 15), strict=True):
        assert called in printed
        assert str(size) in printed
    read = pd.read_csv(tmp_path / "read.csv", index_col=0)
    expected = pd.read_csv(out / "s-exp-r1c1-table.csv").groupby("cluster")["age"]
    assert read["n"].to_dict() == expected.size().to_dict()
    np.testing.assert_allclose(read["age"], expected.mean()[read.index], rtol=1e-12)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_script_takes_names_as_they_are(tmp_path: Path, locale: str) -> None:
    """Quotes, backslashes and other alphabets, whatever the machine's own letters."""
    called = ['cluster 0: "Old"; quit(status=9)', "cluster 1: a\\nb\\", "Ältere 老 😀"]
    frame = pd.DataFrame({"größe": [1, 2, 3, 4], "cluster": [*called, called[2]]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    profile = {"variable": "größe", "level": "", "cluster": called, "mean": 1.5}
    pd.DataFrame(profile).assign(share=None, difference=2.0, rows_of="own rows").to_csv(
        tmp_path / "profile.csv", index=False
    )
    script = tmp_path / "read.R"
    text = r_script("s-1", "rows.csv", "profile.csv", "cluster", called)
    text += "cat(table(rows$cluster), anyNA(rows$cluster), sum(rows[[1]]))\n"
    script.write_text(text, encoding="utf-8")
    assert run_r(script, locale).splitlines()[-1] == "1 1 2 FALSE 10"


def test_names_stand_in_the_report_and_nowhere_else(ran: Desk, out: Path) -> None:
    page = out.parent / "report.html"
    ran("party", "report", "s-exp", *ran.rows, "--html", page, "--force")
    assert "cluster 2: Old &amp; ill" in page.read_text()
    audit = ran("session", "audit", "s-exp")
    report = ran("session", "report", "s-exp", "--json")
    assert "Old &" not in audit + report


def test_another_table_and_files_that_are_there_are_refused(
    ran: Desk, out: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    table().iloc[::-1].to_csv(other, index=False)
    rows = ("--data", str(other), "--id-column", "id", "--out", tmp_path)
    ran("party", "export", "s-exp", *rows, expect=3)
    ran("party", "export", "s-exp", *ran.rows, "--out", out, expect=3)
    assert not list(tmp_path.glob("*.sav"))


@pytest.mark.parametrize(
    ("said", "code"),
    [("7=Far", 5), ("1=" + "x" * 41, 5), ("1=Young", 5), ("1=a\tb", 5), ("one=B", 2)],
)
def test_a_name_that_does_not_fit_is_refused(ran: Desk, said: str, code: int) -> None:
    ran("party", "name", "s-exp", "--name", said, expect=code)
    assert json.loads(ran("party", "name", "s-exp", "--json"))["names"] == {
        "0": "Young",
        "1": "",
        "2": "Old & ill",
    }


def test_names_are_read_from_a_file_and_written_to_one(
    ran: Desk, tmp_path: Path
) -> None:
    written = tmp_path / "names.json"
    ran("party", "name", "s-exp", "--names", written)
    assert json.loads(written.read_text()) == {"0": "Young", "1": "", "2": "Old & ill"}
    written.write_text('{"1": "SIDD"}')
    read = ran("party", "name", "s-exp", "--names", written, "--json")
    assert json.loads(read)["names"]["1"] == "SIDD"
    ran("party", "name", "s-exp", "--name", "1=")
    written.write_text('{"1": 7}')
    ran("party", "name", "s-exp", "--names", written, expect=5)
