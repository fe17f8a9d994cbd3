"""Obstacles and faults that show once parties meet in a session.

The link of strangers by a birth date that stands for none is after recordlinkage#162 and
splink#2281.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import StopReason
from coterie_pages.views.terms_sheet import sheet_of
from tests.protocols.attacks.honest_sessions import completed, house_in, numbers, play


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with house_in(tmp_path) as lent:
        yield lent


def people(
    n: int, columns: list[str], strangers: str, date: str, seed: int
) -> pd.DataFrame:
    """Return the same people at each party, and a namesake without a birth date."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"Vogt{row:02}", f"Anna{row % 7}", f"19{45 + row}-03-1{row % 9}")
        for row in range(n)
    ]
    rows += [(f"Unbekannt{strangers}{row}", "Max", date) for row in range(3)]
    rows.append(("Namesake", "Eva", date))
    table = pd.DataFrame(rows, columns=["surname", "given", "birth"])
    for name in columns:
        table[name] = rng.normal(10, 3, len(table)).round(2)
    return table


@pytest.mark.parametrize("date", ["", "1900-01-01"])
def test_a_date_for_none_links_no_namesakes(house: House, date: str) -> None:
    keys = ["given + surname + birth | date"]
    params = DataCollaboration(
        n_clusters=2,
        alignment={"method": "ecdh", "match_keys": keys, "minimum_share": 0.1},
        dimensions="all_but_one",
    )
    tables = [
        people(40, ["a", "b"], "X", date, 1),
        people(40, ["c", "d"], "Y", date, 2),
    ]
    results = completed(
        play(
            house,
            "s",
            params,
            Layout.lattice(1, 2),
            tables,
            ids=["surname", "given", "birth"],
        )
    )
    assert (results["r1c1"].labels >= 0).sum() == 40


def test_the_coordinator_reads_which_guard_stopped_a_party(house: House) -> None:
    keys = ["given + surname + birth | date", "surname + birth | date"]
    params = DataCollaboration(
        n_clusters=2,
        alignment={"method": "ecdh", "match_keys": keys},
        dimensions="all_but_one",
    )
    session = house.open("s", params, Layout.lattice(1, 2))
    invitations = session.invite()
    guard = {"ids_per_row": 1}
    parties = [house.accept(session, invitations, s, **guard) for s in invitations]
    tables = [people(40, ["a", "b"], "X", "", 1), people(40, ["c", "d"], "Y", "", 2)]
    ids = ["surname", "given", "birth"]
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(party.run, table, id_column=ids)
            for party, table in zip(parties, tables, strict=True)
        ]
        errors = [run.exception() for run in runs]
    stopped = 0
    for error in errors:
        assert isinstance(error, CoterieError), error
        stopped += error.problem is Problem.GUARD_REFUSED and "ids_per_row" in str(
            error
        )
    assert stopped
    status = session.status()
    held = [slot for slot in status.slots if slot.stopped is StopReason.HELD]
    assert len(held) == stopped
    assert all("held" in str(e) for e in errors if "ids_per_row" in str(e))
    parties = [
        house.accept(session, invitations, s, ids_per_row=2) for s in invitations
    ]
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(party.run, table, id_column=ids)
            for party, table in zip(parties, tables, strict=True)
        ]
        results = [run.result() for run in runs]
    assert len(results) == len(tables)
    assert not any(slot.stopped for slot in session.status().slots)


@pytest.mark.parametrize("readers", ["members", "everybody"])
def test_who_learns_what_names_those_who_read_profiles(
    house: House, readers: str
) -> None:
    session = house.open(
        "s",
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=[numbers(["age", "bmi"], 0, 120)],
        release=Release(profiles=readers),
    )
    sheet = sheet_of(b"", session.terms, {})
    told: dict[str, Any] = {each.who.lower(): each.what for each in sheet.learns}
    assert {"analyst", "coordinator"} <= set(told), told
    for who in ("analyst", "coordinator"):
        assert ("profile" in told[who]) == (readers == "everybody")
