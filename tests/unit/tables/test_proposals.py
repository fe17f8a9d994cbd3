"""One study as three hospitals keep it: a workbook, a German text file, a file of SPSS.

Each has its own names, words, codes and units; ``truth`` is what all of them mean.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.terminal import Terminal

from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, read_table
from party_sdk.tables.drafts import Certainty, Proposal, draft_mapping
from party_sdk.tables.mapping import TableMapping

FIELDS = ("sex", "age", "bmi", "hba1c", "cpeptide", "smoking", "insulin", "dx")
SMOKING = ("never", "former", "current")
DICTIONARY = Schema.model_validate(
    {
        "fields": [
            {"name": "sex", "type": "string", "categories": ["female", "male"]},
            {"name": "age", "type": "integer", "unit": "years"},
            {"name": "bmi", "title": "BMI", "unit": "kg/m2"},
            {"name": "hba1c", "title": "HbA1c at baseline", "unit": "mmol/mol"},
            {"name": "cpeptide", "title": "C-peptide", "unit": "nmol/l"},
            {
                "name": "smoking",
                "title": "Smoking status",
                "type": "string",
                "categories": [*SMOKING],
            },
            {"name": "insulin", "type": "boolean"},
            {"name": "dx", "title": "Date of diagnosis", "type": "date"},
        ]
    }
)


def draw(n_rows: int, seed: int) -> pd.DataFrame:
    """What is true of a hospital's patients, in the dictionary's terms."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 6000, n_rows)
    return pd.DataFrame(
        {
            "id": [f"{seed}{number:05d}" for number in range(n_rows)],
            "sex": rng.choice(["female", "male"], n_rows),
            "age": rng.integers(25, 95, n_rows),
            "bmi": rng.normal(31, 4, n_rows).round(1),
            "hba1c": rng.normal(60, 12, n_rows).round(0),
            "cpeptide": rng.uniform(0.2, 3, n_rows).round(2),
            "smoking": rng.choice(SMOKING, n_rows),
            "insulin": rng.integers(0, 2, n_rows),
            "dx": [dt.date(2025, 12, 31) - dt.timedelta(days=int(day)) for day in days],
        }
    )


def numbers_of(truth: pd.DataFrame) -> np.ndarray[Any, Any]:
    days = pd.to_datetime(truth["dx"]) - pd.Timestamp(1970, 1, 1)
    return np.column_stack(
        [
            truth["sex"].map({"female": 0, "male": 1}),
            truth["age"],
            truth["bmi"],
            truth["hba1c"],
            truth["cpeptide"],
            truth["smoking"].map({name: i for i, name in enumerate(SMOKING)}),
            truth["insulin"],
            days.dt.days,
        ]
    ).astype(float)


def write_north(folder: Path, n_rows: int = 60) -> tuple[Path, pd.DataFrame]:
    """A workbook: a title, two sheets, spellings, ``<0.1``, a row of totals."""
    import xlsxwriter

    truth = draw(n_rows, 1)
    path = folder / "diabetes_north.xlsx"
    sexes = {"female": ("F", "f", "female"), "male": ("M", "m", "male")}
    words = {"never": "Never", "former": "ex-smoker", "current": "smoker"}
    heads = ["Patient ID", "Age", "Sex", "BMI", "HbA1c", "C-peptide", "Smoking"]
    heads += ["Insulin", "Date of diagnosis", "Comment"]
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet("Auszug 2025")
        sheet.write(0, 0, "Diabetes cohort, North Hospital (confidential)")
        sheet.write_row(2, 0, heads)
        for number, row in enumerate(truth.itertuples()):
            at = number + 3
            smoking = row.smoking if number % 5 else words[row.smoking]
            peptide: Any = row.cpeptide if number != 7 else "<0.1"
            cells = [row.id, row.age, sexes[row.sex][number % 3], row.bmi, row.hba1c]
            cells += [peptide, smoking, "yes" if row.insulin else "no"]
            sheet.write_row(at, 0, cells)
            sheet.write_datetime(at, 8, dt.datetime.combine(row.dx, dt.time()))
        sheet.write(3 + n_rows, 0, "Total")
        sheet.write(3 + n_rows, 9, f"n={n_rows}")
        book.add_worksheet("Notes").write(0, 0, "do not share")
    truth.loc[7, "cpeptide"] = 0.05
    return path, truth


def write_south(folder: Path, n_rows: int = 60) -> tuple[Path, pd.DataFrame]:
    """German text of Windows: commas in numbers, HbA1c in %, ``k.A.`` and ``-``."""
    truth = draw(n_rows, 2)
    truth["hba1c"] = (truth["hba1c"] / 10.929 + 2.15).round(1)
    path = folder / "Diabetes_Süd.csv"
    smoking = {"never": "nie", "former": "früher", "current": "aktuell"}
    lines = [
        "PatNr;Geschlecht;Alter;BMI;HbA1c (%);C-Peptid;Rauchen;Insulin;Erstdiagnose"
    ]
    for number, row in enumerate(truth.itertuples()):
        sex = {"female": ["w", "W", "weiblich"], "male": ["m", "M", "männlich"]}
        bmi = {3: "k.A.", 4: "-"}.get(number, str(row.bmi).replace(".", ","))
        cells = [row.id, sex[row.sex][number % 3], str(row.age), bmi]
        cells += [str(row.hba1c).replace(".", ","), str(row.cpeptide).replace(".", ",")]
        cells += [smoking[row.smoking], "ja" if row.insulin else "nein"]
        lines.append(";".join([*cells, row.dx.strftime("%d.%m.%Y")]))
    lines.append("Summe;;;;")
    path.write_text("\r\n".join(lines) + "\r\n", encoding="cp1252")
    truth.loc[[3, 4], "bmi"] = np.nan
    truth["hba1c"] = truth["hba1c"] * 10.929 + -23.5
    return path, truth


def write_east(folder: Path, n_rows: int = 60) -> tuple[Path, pd.DataFrame]:
    """A file of SPSS: value labels, user-defined missing values, and 999 for none."""
    import pyreadstat

    truth = draw(n_rows, 3)
    path = folder / "diabetes_east.sav"
    codes = {name: float(i) for i, name in enumerate(SMOKING, 1)}
    table = pd.DataFrame(
        {
            "pat_id": truth["id"],
            "sex": truth["sex"].map({"male": 1.0, "female": 2.0}),
            "age": truth["age"],
            "hba1c": truth["hba1c"],
            "bmi": truth["bmi"],
            "cpep": truth["cpeptide"],
            "smoke": truth["smoking"].map(codes),
            "insulin": truth["insulin"],
            "dxdate": truth["dx"],
        }
    )
    table.loc[[2, 9], "cpep"] = -9
    table.loc[[5, 6, 7], "bmi"] = 999
    pyreadstat.write_sav(
        table,
        str(path),
        column_labels={
            "hba1c": "HbA1c at baseline (mmol/mol)",
            "cpep": "C-peptide",
            "smoke": "Smoking status",
            "dxdate": "Date of diagnosis",
        },
        variable_value_labels={
            "sex": {1: "male", 2: "female"},
            "smoke": {1: "never", 2: "former", 3: "current", 9: "not known"},
            "insulin": {0: "no", 1: "yes"},
        },
        missing_ranges={"cpep": [-9]},
    )
    truth.loc[[2, 9], "cpeptide"] = np.nan
    truth.loc[[5, 6, 7], "bmi"] = np.nan
    return path, truth


# Drafts of mappings


Write = Callable[[Path], tuple[Path, pd.DataFrame]]
IDS = {write_north: "Patient ID", write_south: "PatNr", write_east: "pat_id"}
ALLOW = ("running-number",)


def check(path: Path, truth: pd.DataFrame, named: str, mapping: TableMapping) -> None:
    how = ReadOptions(id_column=named, schema=DICTIONARY, mapping=mapping, allow=ALLOW)
    table = read_table(path, how)
    np.testing.assert_array_equal(matrix(table), numbers_of(truth))
    assert list(table.ids or ()) == list(truth["id"])


class Hospital(NamedTuple):
    path: Path
    truth: pd.DataFrame
    draft: Proposal


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> dict[Write, Hospital]:
    folder, found = tmp_path_factory.mktemp("hospitals"), {}
    for write, named in IDS.items():
        path, truth = write(folder)
        sheet = {"sheet": "Auszug 2025"} if write is write_north else {}
        given = TableMapping.model_validate({"file": sheet})
        draft = draft_mapping(
            path, ReadOptions(id_column=named, mapping=given), DICTIONARY
        )
        found[write] = Hospital(path, truth, draft)
    return found


@pytest.mark.parametrize("write", IDS, ids=lambda each: each.__name__)
def test_a_draft_finds_what_a_person_would_write(
    write: Write, hospitals: dict[Write, Hospital]
) -> None:
    path, truth, draft = hospitals[write]
    opened = [column.name for column in draft.columns if column.is_open]
    assert opened == (["cpeptide"] if write is write_north else [])
    mapping = draft.to_mapping()
    if write is write_north:
        assert mapping.file.skip == 2
        said = mapping.model_dump()
        peptide = said["columns"]["cpeptide"]
        said["columns"]["cpeptide"] = {**peptide, "levels": {"<0.1": 0.05}}
        mapping = TableMapping.model_validate(said)
    if write is write_south:  # shorter than others: nothing but its line is known
        said = mapping.model_dump() | {"leave_out": {"lines": [62]}}
        mapping = TableMapping.model_validate(said)
    check(path, truth, IDS[write], mapping)


def cells_of(proposal: Proposal, name: str) -> dict[str, Any]:
    [column] = [each for each in proposal.columns if each.name == name]
    return {cell.text: cell for cell in column.cells}


def test_what_is_certain_is_told_from_what_is_a_guess(
    hospitals: dict[Write, Hospital],
) -> None:
    north, south, east = (each.draft for each in hospitals.values())
    columns = {each.name: each for each in south.columns}
    assert columns["bmi"].certainty is Certainty.CERTAIN
    assert columns["sex"].certainty is Certainty.GUESS
    assert columns["sex"].candidates[0] == "Geschlecht"
    assert columns["hba1c"].convert == "HbA1c, % to mmol/mol"
    assert not any(column.convert for column in east.columns)
    assert cells_of(north, "cpeptide")["<0.1"].certainty is Certainty.OPEN
    assert cells_of(south, "sex")["weiblich"].certainty is Certainty.CERTAIN
    assert cells_of(south, "sex")["w"].certainty is Certainty.GUESS
    assert cells_of(south, "bmi")["k.A."].is_missing
    assert cells_of(east, "sex")["1"].level == "male"
    assert cells_of(east, "bmi")["999"].count == 3
    assert north.totals == {"Patient ID": ("Total",)}
    assert north.unused == ("Comment",)


def test_pounds_are_known_by_their_abbreviations(tmp_path: Path) -> None:
    fields = [{"name": "weight", "title": "weight (kg)", "unit": "kg"}]
    schema = Schema.model_validate({"fields": fields})
    for title in ("Gewicht (lb)", "Gewicht in lbs", "weight_lb"):
        path = tmp_path / "rows.csv"
        path.write_text(f"id,{title}\na,150.5\nb,180.5\nc,210.5\n")
        [column] = draft_mapping(path, ReadOptions(id_column="id"), schema).columns
        assert (column.source, column.convert) == (title, "weight, pounds to kg")


def test_the_command_writes_a_draft_and_says_what_is_open(
    terminal: Terminal, tmp_path: Path
) -> None:
    path = terminal.file(
        "rows.csv",
        "id,SEX,C-Peptide,Bmi,Age,hba1c,Smoking,insulin,dx\n"
        "a,m,<0.1,30,50,60,former,1,2020-01-01\nb,f,1,31,51,61,never,0,2020-01-02\n",
    )
    schema = terminal.file("schema.json", DICTIONARY.model_dump_json())
    out = tmp_path / "mapping.toml"
    ask = ("table", path, "--id-column", "id", "--schema", schema)
    said = terminal(*ask, "--propose", "--mapping", out, expect=5).stdout
    for part in ("certain:", "guess:", "open:", "'<0.1' (1 row)", "sex from 'SEX'"):
        assert part in said
    text = out.read_text().replace(
        'from = "C-Peptide"', 'from = "C-Peptide"\nlevels = {"<0.1" = 0.05}'
    )
    out.write_text(text)
    report = terminal.json(*ask, "--mapping", out)
    assert report["rows"] == 2
    assert report["problems"] == []
    document = terminal.json(*ask, "--propose", expect=5)
    assert Proposal.model_validate(document).columns[0].source == "SEX"
    assert document["columns"][0]["candidates"][0] == "SEX"
    terminal(*ask, "--propose", "--mapping", out, expect=3)
    terminal("table", path, "--propose", expect=2)
    terminal("table", path, "--force", expect=2)
