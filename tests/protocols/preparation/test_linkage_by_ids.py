"""Rows linked by ids: which rows are common, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.lies import altered
from support.tables import blobs, names, overlapping_rows, parties

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    OverlapTooSmall,
    ProtocolFailed,
    RowsNotAligned,
)
from clustering_protocols.engine import packets
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment import identifiers, linkage
from clustering_protocols.shared_stages.alignment.digests import describe_overlap
from clustering_protocols.shared_stages.alignment.identifiers import (
    distinct_ids,
    join_parts,
    normalise_id,
    normalise_id_parts,
    normalise_ids,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import Session

ALL = Alignment().normalisation
TWO = overlapping_rows(2, 40, 7)
X = blobs(80)


def params(**more: Any) -> ProductQuantisation:
    said = {"method": "ecdh", **more}
    return ProductQuantisation(
        n_clusters=3, codebook_size=8, alignment=Alignment.model_validate(said)
    )


def run(chosen: Any, split: simulation.Split) -> simulation.SimulationResult:
    return simulation.run(chosen, split.layout, split.data, seed=3)


def taking_part(split: simulation.Split, done: simulation.SimulationResult) -> set[int]:
    found = [
        {int(row) for row in split.held[slot][outcome.labels >= 0]}
        for slot, outcome in done.outcomes.items()
    ]
    assert all(each == found[0] for each in found)
    return found[0]


@given(
    st.lists(
        st.text(
            st.sampled_from(
                'aZ \t\x1c\u2003\u00e9e\u0301\u212b\ufb01\u0130"\\[\0\uff02'
            ),
            max_size=4,
        ),
        max_size=7,
    ),
    st.sets(st.sampled_from(["nfc", "nfkc", "casefold", "spaces", "strip"])),
    st.integers(1, 8),
)
def test_an_id_is_compared_alike_alone_and_among_others(
    names: list[str], steps: set[Any], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(identifiers, "_BATCH", at_once)
        together = list(normalise_ids(iter(names), steps))
    assert together == [normalise_id(name, steps) for name in names]


def test_ids_of_several_columns_are_compared_part_by_part() -> None:
    assert normalise_id_parts(join_parts(["A ", "b"]), ALL) == normalise_id_parts(
        join_parts(["a", "B"]), ALL
    )
    different = [
        join_parts(["ab", "c"]),
        join_parts(["a", "bc"]),
        join_parts(["a,b", "c"]),
        "ab c",
        "abc",
    ]
    found = distinct_ids(
        [*different, '["abc"]', "[1, 2]", '["a', '["a", 2]'], ALL, "error"
    )
    assert len(set(found.ids)) == 9


def test_a_duplicate_id_is_named_by_its_rows_or_first_kept() -> None:
    spelt = ["smith", "jones", "meyer", " SMITH", "jones"]
    with pytest.raises(InvalidData, match="Rows 1 and 4 have the same id") as refused:
        distinct_ids(spelt, ALL, "error")
    assert "smith" not in str(refused.value).lower()
    assert distinct_ids(spelt, ALL, "first").rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("empty", ["  ", join_parts(["a", " "])])
def test_an_id_empty_after_normalisation_is_named_by_its_row(empty: str) -> None:
    with pytest.raises(InvalidData, match="Row 2 has no id"):
        distinct_ids(["a", empty], ALL, "first")


def test_spellings_of_two_parties_meet() -> None:
    held = [list(range(20)), list(range(20))[::-1]]
    spelt = {1: [f" PATIENT-{row:06d}" for row in held[1]]}
    split = parties(X, held, spelt)
    assert taking_part(split, run(params(), split)) == set(range(20))
    with pytest.raises(OverlapTooSmall):
        run(params(normalisation=("nfkc",)), split)


@pytest.mark.parametrize("n_common", [9, 10, 24, 25])
def test_the_stricter_of_both_minima_stops_the_session(n_common: int) -> None:
    split = parties(X, overlapping_rows(2, n_common, 20))
    wanted = params(minimum_overlap=25 if n_common > 20 else 1)
    if n_common in {10, 25}:
        assert len(taking_part(split, run(wanted, split))) == n_common
        return
    with pytest.raises(OverlapTooSmall, match=r"0 to \d+ % of|in common; the terms"):
        run(wanted, split)


def test_nothing_of_the_data_leaves_before_the_overlap_is_known() -> None:
    split = parties(X, overlapping_rows(2, 5, 20))
    session = Session(params(), split.layout, split.data, seed=5)
    with pytest.raises(OverlapTooSmall, match="20 to 25 % of the smallest") as ended:
        session.run_to_end()
    assert "patient" not in str(ended.value)
    read = [packets.parse(sent.payload) for sent in session.received_messages]
    kinds = {packet.header.record["kind"] for packet in read}
    assert kinds == {"signed", "secrets-shared", "keys-masked", "key-tokens"}


def at(kind: type[Any], ids: dict[int, list[str]] | None = None) -> Session:
    split = parties(X, TWO, ids)
    session = Session(params(), split.layout, split.data, seed=5)
    session.play_until(kind)
    return session


def rows_of(session: Session, slot: str) -> Any:
    return packets.parse(session.open.tasks[slot]).arrays["rows"]


def test_rows_without_an_id_are_never_selected() -> None:
    spelt = names(TWO[0])
    spelt[TWO[0].index(0)] = "unknown"
    session = at(linkage.SelectLinked, {0: spelt})
    order = session.recall("r1c1", linkage.ListOrder).order
    nameless = np.flatnonzero(order == TWO[0].index(0))
    rows = np.concatenate([nameless, rows_of(session, "r1c1")[1:]])
    lie = altered(session, "r1c1", lambda _: {"rows": rows})
    with pytest.raises(ProtocolFailed, match="whose ids were not compared"):
        session.answer("r1c1", lie)


def test_only_selected_ids_are_normalised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, seen = at(linkage.SelectLinked), list[str]()

    def count(names: list[str], steps: Any) -> list[str]:
        seen.extend(names)
        return list(normalise_ids(names, steps))

    monkeypatch.setattr(linkage, "normalise_ids", count)
    selected = len(rows_of(session, "r1c1"))
    session.answer("r1c1", session.open.tasks["r1c1"])
    assert len(seen) == selected < len(TWO[0])


def test_a_party_selects_no_fewer_rows_than_the_terms_ask_for() -> None:
    session = at(linkage.SelectLinked)
    few = {"rows": rows_of(session, "r1c1")[:9], "n_rows": {"r1c1": 9, "r1c2": 9}}
    with pytest.raises(GuardRefused, match="are common than the 10 that the terms"):
        session.answer("r1c1", altered(session, "r1c1", lambda _: few))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"r1c1": 0}, "impossible"),
        ({"r1c1": 99}, "impossible"),
        ({"r9c9": 40}, "impossible"),
        ({"r1c1": 39, "r1c2": 39}, "that differ from"),
        ({"r1c2": 39}, "that differ from"),
    ],
)
def test_numbers_of_rows_are_those_of_the_rows_selected(
    changes: dict[str, int], why: str
) -> None:
    session = at(linkage.SelectLinked)
    lie = altered(session, "r1c1", lambda asked: {"n_rows": asked.n_rows | changes})
    with pytest.raises(ProtocolFailed, match=f"numbers of rows .*{why}"):
        session.answer("r1c1", lie)


def test_the_operator_reads_how_many_rows_take_part() -> None:
    session = at(linkage.SelectLinked)
    for slot in ("r1c1", "r1c2"):
        assert session.answer(slot).notes == {
            "linked rows": "85 to 90 % of the smallest table"
        }


@pytest.mark.threat(98)
@pytest.mark.parametrize("lie", ["another row", "two rows in another order"])
def test_parties_that_were_told_different_rows_do_not_go_on(lie: str) -> None:
    session = at(linkage.SelectLinked)
    rows = rows_of(session, "r1c1").copy()
    if lie == "another row":
        rows[0] = np.setdiff1d(np.arange(len(TWO[0])), rows)[0]
    else:
        rows[:2] = rows[1::-1]
    lied = altered(session, "r1c1", lambda _: {"rows": rows})
    with pytest.raises(RowsNotAligned):
        session.play_round(forged={"r1c1": lied})


@pytest.mark.parametrize(
    ("n_common", "n_smallest", "told"),
    [
        (0, 810, "0 to 5 %"),
        (229, 810, "25 to 30 %"),
        (679, 810, "80 to 85 %"),
        (809, 810, "95 to 100 %"),
        (810, 810, "95 to 100 %"),
    ],
)
def test_a_share_is_told_in_steps_of_a_twentieth(
    n_common: int, n_smallest: int, told: str
) -> None:
    share = describe_overlap(n_common, n_smallest, 10)
    assert share == f"{told} of the smallest table"


def test_of_a_table_of_few_ids_no_share_is_told() -> None:
    told = {describe_overlap(n, 9, 10) for n in range(10)}
    assert told == {"an undisclosed part of a table of fewer than 10 ids"}
