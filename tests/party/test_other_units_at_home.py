"""Who brings a column in another unit is asked alone, in a session and for new rows."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support.analyst_process import House

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from party_sdk.cli.terminal import asker as confirmation
from party_sdk.party.participant import Party

rng = np.random.default_rng(3)
LAYOUT = Layout.lattice(3)
SAID = "HbA1c in % here, in mmol/mol there"


def hospital(n: int, *, percent: bool = False) -> MatrixSource:
    group = rng.integers(2, size=n)
    hba1c = rng.normal(50 + 25 * group, 6)
    rows = np.column_stack([rng.normal(45 + 20 * group, 5), hba1c])
    if percent:
        rows[:, 1] = (hba1c + 23.5) / 10.929
    return MatrixSource(rows, ["age", "hba1c"])


TABLES = [hospital(60), hospital(50), hospital(40, percent=True)]


def test_only_rows_in_other_units_need_confirmation(house: House) -> None:
    session = house.open("units", LosslessFederated(n_clusters=2), LAYOUT)
    invitations = session.invite()
    asked: dict[str, list[str]] = {slot: [] for slot in invitations}

    def joined(slot: str) -> Party:
        def approve(found: Inspection) -> bool:
            asked[slot].append(found.asks)
            return True

        asker = Mock(is_present=True, approve=approve)
        return house.accept(session, invitations, slot, asker=asker)

    parties = {slot: joined(slot) for slot in invitations}
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(party.run, rows)
            for party, rows in zip(parties.values(), TABLES, strict=True)
        ]
        results = [each.result() for each in runs]
    assert [len(asked[slot]) for slot in invitations] == [0, 0, 1]
    [said] = asked["r3c1"]
    assert SAID in said
    ledger = "".join(parties["r3c1"].stored.ledger.verified_lines)
    assert "hba1c" not in ledger.casefold()
    # a new quarter, of a party whose column was right, in the other unit
    quarter = hospital(25, percent=True)
    with pytest.raises(GuardRefused, match="that of the session's rows"):
        results[0].predict(quarter)
    agreed = results[0].predict(quarter, agree=lambda doubt: SAID[:10] in doubt)
    assert len(agreed.labels) == 25


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks_before_it_labels_new_rows(
    monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: answer)
    assert not confirmation.confirm_units("nobody is there")
    there: Any = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(confirmation, "sys", there)
    assert confirmation.confirm_units("somebody is there") is answer
