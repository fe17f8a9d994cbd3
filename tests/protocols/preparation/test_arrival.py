"""Tables are sorted by id before a session, and outcomes return to table order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.drawn_terms import drawn
from support.tables import blobs, names, parties

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused, InvalidData, RowsNotAligned
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy import ristretto
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.row_selection import AdmittedTable, admit_table
from clustering_protocols.terms.terms import Layout

N = 60
X, TRUTH = blobs(N), np.arange(N) % 3
IN_ORDER = list(range(N))
SHARED, ALONE, MIXED = (
    Layout.lattice(1, 2),
    Layout.lattice(3, 1),
    Layout.model_validate(
        {
            "slots": [
                {"name": "a", "row": 0, "column": 0},
                {"name": "b", "row": 0, "column": 1},
                {"name": "alone", "row": 1, "column": 0},
            ]
        }
    ),
)


def shuffled(seed: int, n: int = N) -> list[int]:
    found: list[int] = np.random.default_rng(seed).permutation(n).tolist()
    return found


def params(**said: Any) -> DataCollaboration:
    return DataCollaboration(n_clusters=3, alignment=Alignment.model_validate(said))


def arrived(
    ids: Sequence[str] | None, layout: Layout = SHARED, slot: str = "r1c1", **said: Any
) -> AdmittedTable:
    n_rows = 4 if ids is None else len(ids)
    own = MatrixSource(np.arange(float(n_rows))[:, None], ids=ids)
    return admit_table(drawn(params(**said), layout), params(**said), slot, own)


def rows_of(arrival: AdmittedTable) -> list[int]:
    return matrix(arrival.data)[:, 0].astype(int).tolist()


def test_rows_of_a_shared_row_group_are_sorted_by_id() -> None:
    found = arrived(["c", "a", "d", "b"])
    assert rows_of(found) == [1, 3, 0, 2]
    assert list(found.data.ids or ()) == ["a", "b", "c", "d"]
    assert found.rows is not None
    assert found.rows.tolist() == [1, 3, 0, 2]


def test_ids_that_differ_in_spelling_alone_arrive_at_one_place() -> None:
    one, other = arrived(["Ray ", "ANNA", "bo"]), arrived(["ray", "Bo", "anna"])
    assert (rows_of(one), rows_of(other)) == ([1, 2, 0], [2, 1, 0])
    exact = arrived(["Ray ", "ANNA", "bo"], normalisation=["nfc"])
    assert rows_of(exact) == [1, 0, 2], "there upper case comes first"


def test_rows_that_are_in_order_arrive_as_they_are() -> None:
    found = arrived(["a", "b"])
    assert (found.rows, found.record) == (None, None)
    assert isinstance(found.data, MatrixSource)


@pytest.mark.parametrize(
    ("layout", "slot", "method"),
    [
        (ALONE, "r1c1", "declared"),
        (ALONE, "r1c1", "position"),
        (MIXED, "alone", "declared"),
        (MIXED, "alone", "position"),
        (MIXED, "alone", "ecdh"),
    ],
)
def test_a_party_with_unshared_rows_needs_no_ids(
    layout: Layout, slot: str, method: str
) -> None:
    assert arrived(None, layout, slot, method=method).rows is None
    assert arrived(["b", "a"], layout, slot, method=method).rows is None
    assert arrived(["b", "B"], layout, slot, method=method).rows is None
    with pytest.raises(InvalidData, match="Rows 1 and 3 have the same id"):
        arrived(["b", "a", "b"], layout, slot, method=method)
    first = {"method": method, "duplicates": "first"}
    assert rows_of(arrived(["b", "a", "b"], layout, slot, **first)) == [0, 1]


def test_a_protocol_that_aligns_no_rows_takes_them_as_they_are() -> None:
    own = MatrixSource(np.eye(2), ids=["b", "a"])
    found = admit_table(drawn(Dummy(), SHARED), Dummy(), "r1c2", own)
    assert found == AdmittedTable(data=own)


def test_rows_without_ids_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidData) as refused:
        arrived(None)
    assert "--id-column" in refused.value.detail
    assert "alignment.method 'position'" in refused.value.detail
    with pytest.raises(InvalidData) as refused:
        arrived(None, method="ecdh")
    assert "position" not in refused.value.detail, "the rows are others there"


def test_a_table_whose_ids_all_stand_for_a_missing_one_is_refused() -> None:
    unknown = ["unknown", "n/a", "0000"]
    with pytest.raises(InvalidData, match=r"No row can be linked: the ids .*id-column"):
        arrived(unknown, method="ecdh")
    keys = {"method": "ecdh", "match_keys": ["name"]}
    with pytest.raises(InvalidData, match="No row can be linked: the match keys"):
        arrived(unknown[:2], **keys)
    assert arrived(unknown, MIXED, "alone", method="ecdh").rows is None


@pytest.mark.parametrize("method", ["declared", "position", "ecdh"])
def test_two_rows_of_one_id_are_refused_by_both(method: str) -> None:
    with pytest.raises(InvalidData, match="Rows 1 and 3 have the same id"):
        arrived(["Ada", "b", "ada "], method=method)


def test_linkage_needs_its_library_where_rows_are_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise GuardRefused("libsodium")

    monkeypatch.setattr(ristretto, "load_sodium", missing)
    with pytest.raises(GuardRefused, match="libsodium"):
        arrived(["b", "a"], method="ecdh")
    assert arrived(None, MIXED, "alone", method="ecdh").rows is None


def test_the_first_row_of_an_id_arrives() -> None:
    found = arrived(["c", "a", "C ", "b", "a"], duplicates="first")
    assert rows_of(found) == [1, 3, 0]
    outcome = found.put_back(Outcome(labels=np.array([10, 11, 12])))
    assert outcome.labels.tolist() == [12, 10, -1, 11, -1]
    assert outcome.report == {"rows that took part": "3 of 5"}


def test_by_position_rows_stay_where_they_are() -> None:
    assert arrived(None, method="position").rows is None
    assert arrived(["b", "a"], method="position").rows is None
    first = arrived(["b", "a", "B"], method="position", duplicates="first")
    assert rows_of(first) == [0, 1]


def test_terms_can_align_tables_without_ids_by_position() -> None:
    split = parties(X, [shuffled(1), shuffled(1)])
    data = {slot: MatrixSource(matrix(rows)) for slot, rows in split.data.items()}
    with pytest.raises(InvalidData, match="--id-column"):
        simulation.run(params(), split.layout, data, seed=1)
    done = simulation.run(params(method="position"), split.layout, data, seed=1)
    for outcome in done.outcomes.values():
        assert adjusted_rand(outcome.labels, TRUTH[shuffled(1)]) == 1.0


@pytest.mark.parametrize("ids", ["in another order", "in one table alone"])
def test_ids_are_compared_also_where_rows_align_by_position(ids: str) -> None:
    one = parties(X, [IN_ORDER, IN_ORDER])
    other = one.data["r1c2"]
    given = names(shuffled(1)) if ids == "in another order" else None
    data = {**one.data, "r1c2": MatrixSource(matrix(other), other.columns, given)}
    with pytest.raises(RowsNotAligned):
        simulation.run(params(method="position"), one.layout, data, seed=1)


def test_an_unshared_row_group_needs_no_ids_to_link_by() -> None:
    rows = {"a": shuffled(1, 40), "b": shuffled(2, 40), "alone": list(range(40, N))}
    data = {
        slot.name: MatrixSource(
            X[np.ix_(rows[slot.name], np.arange(3) + 3 * slot.column)],
            columns=[f"x{3 * slot.column + j}" for j in range(3)],
            ids=None if slot.name == "alone" else names(rows[slot.name]),
        )
        for slot in MIXED.slots
    }
    for method in ("declared", "ecdh"):
        # more rows than the party alone has, which shares none
        said = {"method": method, "minimum_overlap": 40}
        chosen = DataCollaboration(
            n_clusters=3, alignment=Alignment.model_validate(said)
        )
        found = simulation.run(chosen, MIXED, data, seed=1).outcomes
        assert len(found["alone"].labels) == N - 40
        assert adjusted_rand(found["a"].labels, TRUTH[rows["a"]]) == 1.0
