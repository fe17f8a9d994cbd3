"""One study as three hospitals keep it: a workbook, a German text file, a file of SPSS.

Each has its own names, words, codes and units; ``truth`` is what all of them mean.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clustering_protocols.terms.schema import Schema

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
