"""Three hospitals keep one study: mappings alone make their tables alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.terminal import Terminal

from clustering_protocols.numerics.data_source import matrix
from party_sdk.tables import ReadOptions, read_table
from party_sdk.tables.drafts import Certainty, Proposal, propose
from party_sdk.tables.mapping import TableMapping

from .hospital_tables import (
    DICTIONARY,
    numbers_of,
    write_east,
    write_north,
    write_south,
)

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
        draft = propose(path, ReadOptions(id_column=named, mapping=given), DICTIONARY)
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
