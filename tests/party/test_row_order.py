"""Parties of a row group bring their tables in any order, and get their own labels."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House
from support.in_process import Api
from support.tables import blobs, names

from clustering_protocols.common.errors import GuardRefused, InvalidData
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import SlotState
from coterie import Party, Result
from party_sdk.party.ledger import Ledger
from party_sdk.party.party_session import Document
from party_sdk.tables import open_table

N = 45
X, TRUTH = blobs(N), np.arange(N) % 3
PEOPLE = names(range(N))
LAYOUT = Layout.lattice(1, 2)
A, B = LAYOUT.names


def table(place: int, rows: Any, people: list[str] | None = None) -> pd.DataFrame:
    columns = {f"x{j}": X[rows, j] for j in (3 * place, 3 * place + 1, 3 * place + 2)}
    return pd.DataFrame({"person": np.array(people or PEOPLE)[rows], **columns})


def shuffled(seed: int) -> IntArray:
    return np.random.default_rng(seed).permutation(N)


class Two:
    def __init__(self, api: Api, home: Path) -> None:
        self.house, self.homes = House(api, home), home

    def open(self, name: str, **said: Any) -> None:
        self.house.home = self.homes / name
        chosen = DataCollaboration(
            n_clusters=3,
            dimensions="all_but_one",
            alignment=Alignment.model_validate(said),
        )
        self.session = self.house.open(name, chosen, LAYOUT)
        self.invitations = self.session.invite()

    def party(self, slot: str, **rules: Any) -> Party:
        return self.house.accept(self.session, self.invitations, slot, **rules)

    def take_part(self, slot: str, table: Any, id_column: str | None) -> Result:
        with self.party(slot) as party:
            return party.run(table, id_column=id_column)

    def run(
        self, tables: Mapping[str, Any], id_column: str | None = "person"
    ) -> dict[str, Result]:
        with ThreadPoolExecutor(2) as pool:
            waiting = {
                slot: pool.submit(self.take_part, slot, each, id_column)
                for slot, each in tables.items()
            }
            return {slot: each.result() for slot, each in waiting.items()}


@pytest.fixture(scope="module")
def two(driven_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Two:
    return Two(driven_api, tmp_path_factory.mktemp("two"))


def of_people(result: Result) -> dict[str, int]:
    return dict(zip(result.ids or (), result.labels.tolist(), strict=True))


def test_shuffled_tables_get_the_labels_of_the_pooled_table(
    two: Two, tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    table(1, shuffled(2)).to_csv(path, index=False)
    two.open("shuffled")
    found = two.run({A: table(0, shuffled(1)), B: path})
    for slot, rows in ((A, shuffled(1)), (B, shuffled(2))):
        assert list(found[slot].ids or ()) == [PEOPLE[row] for row in rows]
        assert adjusted_rand(found[slot].labels, TRUTH[rows]) == 1.0
        assert "rows that took part" not in found[slot].report
    assert of_people(found[A]) == of_people(found[B])
    two.open("in-order")
    alike = two.run({A: table(0, range(N)), B: table(1, range(N))})
    assert adjusted_rand(alike[A].labels, TRUTH) == 1.0


def test_tables_without_ids_are_refused_before_they_join(two: Two) -> None:
    two.open("nameless")
    bare = table(0, range(N)).drop(columns="person")
    for given in (bare, bare.to_numpy()):
        with two.party(A) as party, pytest.raises(InvalidData) as refused:
            party.run(given)
        assert "--id-column" in refused.value.detail
        assert "alignment.method 'position'" in refused.value.detail
    slot = two.session.status().slots[0]
    assert (slot.joined_at, slot.state) == (None, SlotState.REFUSED)
    assert slot.reason == "invalid-data"


def test_a_party_s_own_minimum_holds_for_the_rows_that_arrive(two: Two) -> None:
    two.open("few", duplicates="first")
    twice = table(0, [*range(20), *range(20)])
    with (
        two.party(A, minimum_rows=21) as party,
        pytest.raises(GuardRefused, match="'minimum_rows' is 21; 20 rows"),
    ):
        party.run(twice, id_column="person")


class Killed(BaseException):
    """Nothing of the product catches this."""


@pytest.mark.parametrize("place", ["log_joining", "log_sending", "log_receipt"])
@pytest.mark.quick(1)
def test_a_killed_party_reads_its_result_in_its_own_order(
    two: Two, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    two.open(f"killed-{place.replace('_', '-')}")
    dying, own = two.party(A), table(0, shuffled(1))
    original: Callable[..., None] = getattr(Ledger, place)

    def is_there(said: Any) -> bool:
        return place == "log_joining" or said == (3, 1)

    def die(ledger: Ledger, *said: Any) -> None:
        if ledger is dying.stored.ledger and is_there(said[0]):
            raise Killed
        original(ledger, *said)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(two.take_part, B, table(1, shuffled(2)), "person")
        with monkeypatch.context() as context:
            context.setattr(Ledger, place, die)
            with pytest.raises(Killed):
                dying.run(own, id_column="person")
        found = two.take_part(A, own, "person")
        assert of_people(found) == of_people(other.result())
    with two.party(A) as party:
        again = party.result()
        kept = party.stored.load_document(Document.ADMITTED_ROWS) or b""
    assert again.labels.tolist() == found.labels.tolist()
    assert again.ids is None
    assert b"arrived" in kept
    assert two.take_part(A, own, "person").labels.tolist() == found.labels.tolist()


def test_a_second_table_replaces_the_order_of_the_first(two: Two) -> None:
    """The slot was free still: the first table did not fit the others."""
    two.open("second-table")
    with two.party(A) as first:
        first.enrol(open_table(table(0, shuffled(1)), id_column="person"))
    with two.party(B) as party:
        short = open_table(table(1, range(N - 1)[::-1]), id_column="person")
        with pytest.raises(Exception, match="44 rows"):
            party.enrol(short)
        assert party.stored.load_document(Document.ADMITTED_ROWS) is not None
        party.enrol(open_table(table(1, range(N)), id_column="person"))
        assert party.stored.load_document(Document.ADMITTED_ROWS) is None, (
            "that one is in order"
        )
