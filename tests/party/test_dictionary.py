"""A dictionary in the terms: columns are found by name, and checked before joining."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House
from support.drawn_terms import drawn
from support.terminal import coterie

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import SlotState
from party_sdk.application.home import Home
from party_sdk.tables import open_table

LAYOUT = Layout.lattice(2)
SCHEMA = Schema(
    fields=(
        Field(name="age", unit="years", constraints=Constraints(minimum=0)),
        Field(name="weight", unit="kg"),
        Field(name="crp"),
        Field(name="admitted", type="date"),
    )
)


def rows(seed: int, n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 2, n) * 40
    return pd.DataFrame(
        {
            "patient": [f"p{seed}-{row}" for row in range(n)],
            "age": near + rng.integers(20, 40, n),
            "weight": near + rng.normal(60, 3, n).round(1),
            "crp": rng.normal(5, 1, n).round(2),
            "admitted": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )


def written(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


OTHERWISE = ["crp", "patient", "admitted", "weight", "age"]


def test_a_table_without_a_required_column_cannot_join(house: House) -> None:
    session = house.coordinator.create_session(
        "wards", Dummy(), LAYOUT, session_id="lacking", dictionary=[SCHEMA]
    )
    party = house.accept(session, session.invite(), "r1c1")
    with pytest.raises(InvalidData, match="'weight'"):
        party.run(rows(5).rename(columns={"weight": "wieght"}), id_column="patient")
    with pytest.raises(InvalidData, match="age"):
        party.run(rows(5).assign(age=-1), id_column="patient")
    with pytest.raises(InvalidData, match="different columns"):
        party.run(np.zeros((30, 4)))
    slot = session.status().slots[0]
    assert slot.joined_at is None
    assert (slot.state, slot.reason) == (SlotState.REFUSED, "invalid-data")
    with party:
        party.enrol(open_table(rows(5), id_column="patient", schema=SCHEMA))
    slot = session.status().slots[0]
    assert (slot.state, slot.reason) == (SlotState.JOINED, None), "it came again"


def test_a_dictionary_of_no_use_opens_no_session() -> None:
    assert drawn(Dummy(), LAYOUT, dictionary=(SCHEMA,)).dictionary == (SCHEMA,)
    sex = Field(name="sex", type="string", categories=("m", "f"))
    for schemas, why in (
        ((SCHEMA, SCHEMA), "1 column groups"),
        ((Schema(fields=(sex,)),), "'sex' has levels"),
    ):
        with pytest.raises(InvalidParameters, match=why):
            drawn(Dummy(), LAYOUT, dictionary=schemas)


def test_a_table_is_checked_for_an_invitation_without_joining(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "connect", lambda *_: house.api.connect())
    session = house.coordinator.create_session(
        "wards", Dummy(), LAYOUT, session_id="checked", dictionary=[SCHEMA]
    )
    invitation = session.invite()["r1c1"]

    def check(frame: pd.DataFrame, expect: int = 5) -> Any:
        path = written(frame, tmp_path / "table.csv")
        words = ("party", "check", invitation, "--data", path, "--id-column", "patient")
        there = ("--json", "--home", tmp_path / "home")
        return json.loads(coterie(*words, *there, expect=expect).stdout)

    report = check(rows(6)[OTHERWISE], expect=0)
    assert (report["rows"], report["problems"]) == (30, [])
    assert [column["name"] for column in report["columns"]] == list(SCHEMA.names)
    report = check(rows(6).assign(crp="high"))
    assert {problem["column"] for problem in report["problems"]} == {"crp"}
    assert report["problems"][0]["line"] == 2
    report = check(pd.concat([rows(6), rows(6)[:1]]))
    assert "have the same id" in report["problems"][0]["what"]
    report = check(rows(6)[OTHERWISE][:9])
    assert report["problems"][0]["what"] == "'minimum_rows' is 10; 9 rows take part."
    assert not (tmp_path / "home").exists(), "nothing was joined"
    assert session.status().slots[0].joined_at is None
