"""Tables that others reported as read wrong without a word, and what is said of them here.

After jasp-desktop#403, polars#18797, pandas#22661, gdal#11863, readxl#428, pandas#42562,
polars#28163 and actualbudget#6206.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xlsxwriter import Workbook

from tests.faces.reports.conftest import Command

Report = Callable[..., dict[str, Any]]
Hints = Callable[..., str]


def values(n: int = 40) -> list[float]:
    drawn = np.random.default_rng(0).normal(60, 12, n).round(1)
    return [float(value) for value in drawn]


def largest_of(report: dict[str, Any], name: str) -> float:
    [column] = [each for each in report["columns"] if each["name"] == name]
    return float(column["largest"])


@pytest.mark.parametrize("sign", [".", ","])
def test_a_sign_of_thousands_is_not_a_decimal_sign(
    tmp_path: Path, table_report: Report, hints: Hints, sign: str
) -> None:
    counts = [9370, 967, 776, 4709, 9079, 856, 8101, 6966, 463, 18_991] * 4
    cells = [f"{count:,}".replace(",", sign) for count in counts]
    lines = [f"P{row:02};{20 + row * 17 % 61};{cell}" for row, cell in enumerate(cells)]
    path = tmp_path / "blood.csv"
    path.write_text("\n".join(["id;age;leuko", *lines]))
    report = table_report(path, "--id-column", "id")
    said = hints(path, "--id-column", "id")
    told = "three digits" in said or "thousand" in said
    assert told or largest_of(report, "leuko") == 18_991


@pytest.mark.parametrize("case", ["two cells", "one cell"])
def test_rows_inside_a_stray_quotation_mark_are_told(
    tmp_path: Path, table_report: Report, hints: Hints, case: str
) -> None:
    notes = ["ok"] * 40
    notes[5] = '"sehr'
    if case == "two cells":
        notes[12] = 'gut"'
    lines = [f"{age},{notes[row]}" for row, age in enumerate(values())]
    path = tmp_path / "notes.csv"
    path.write_text("\n".join(["age,note", *lines]))
    report = table_report(path, "--columns", "age")
    told = hints(path, "--columns", "age")
    assert report["rows"] == 40 or "quotation mark" in told


@pytest.mark.parametrize("case", ["hidden", "percent", "formula", "error"])
def test_a_workbook_is_read_as_a_person_sees_it(
    tmp_path: Path, hints: Hints, case: str
) -> None:
    path = tmp_path / "sheet.xlsx"
    book = Workbook(str(path))
    sheet = book.add_worksheet()
    percent = book.add_format({"num_format": "0.0%"})
    sheet.write_row(0, 0, ["age", "hba1c"])
    for row, value in enumerate(values(), 1):
        sheet.write(row, 0, 20 + row)
        few = row % 10 == 5
        if case == "percent" and few:
            sheet.write_number(row, 1, value / 1000, percent)
        elif case == "formula" and few:
            sheet.write_formula(row, 1, f"=A{row + 1}/3", None, "")
        elif case == "error" and few:
            sheet.write_formula(row, 1, f"=A{row + 1}/0", None, "#DIV/0!")
        else:
            sheet.write_number(row, 1, value / 10)
    if case == "hidden":
        for row in (4, 5, 6):
            sheet.set_row(row, None, None, {"hidden": True})
    book.close()
    assert case in hints(path).lower()


@pytest.mark.parametrize("form", ["\u2212{}", "{}-", "({})"])
def test_a_minus_is_named_and_never_made_a_missing_value(
    tmp_path: Path, command: Command, form: str
) -> None:
    cells = [
        form.format(value) if row % 4 == 0 else str(value)
        for row, value in enumerate(values())
    ]
    lines = [f"{20 + row},{cell}" for row, cell in enumerate(cells)]
    path = tmp_path / "excess.csv"
    path.write_text("\n".join(["age,excess", *lines]), encoding="utf-8")
    said = command("table", path).output
    assert "40 rows" in said or "excess" in said, "rows vanish without a word"
    assert "problem" not in said or ("minus" in said and "missing=" not in said)


@pytest.mark.parametrize("case", ["H and M", "F and M"])
def test_the_draft_of_a_mapping_is_certain_of_m_only_as_a_man(
    tmp_path: Path, command: Command, case: str
) -> None:
    fields = [
        {"name": "sex", "type": "string", "categories": ["f", "m"]},
        {"name": "age"},
    ]
    dictionary = tmp_path / "dictionary.json"
    dictionary.write_text(json.dumps({"fields": fields}))
    other = "H" if case == "H and M" else "F"
    lines = [f"A{row};{(other, 'M', 'M')[row % 3]};{50 + row}" for row in range(9)]
    path = tmp_path / "madrid.csv"
    path.write_text("\n".join(["paciente;sexo;edad", *lines]))
    words = ["--id-column", "paciente", "--schema", dictionary, "--propose"]
    said = command("table", path, *words, "--mapping", tmp_path / "m.toml").output
    certain, _, _ = said.partition("guess:")
    assert "sexo" in said
    # hombre and mujer: M is the woman
    assert ("'M' (6 rows) is 'm'" in certain) == (case == "F and M")
