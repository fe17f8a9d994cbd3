"""Whose numbers do not go with the others' is seen by everybody, whatever the protocol."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from support.terminal import Terminal, accepting, opened

from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout
from party_sdk.results.cautions import oddities

HONEST = 60 + make_blobs(240, 4, centers=2, random_state=0, cluster_std=2.0)[0]
PROTOCOLS: dict[str, Params] = {
    "dc": DataCollaboration(n_clusters=3),
    "omnifc": OmniFC(n_clusters=3),
    "llf": LosslessFederated(n_clusters=3),
}


def told(params: Params, third: np.ndarray, **choices: object) -> list[list[str]]:
    """What each of three parties is told, the last with these rows."""
    layout = Layout.lattice(3)
    tables = [HONEST[:80], HONEST[80:160], third]
    data = {
        slot: MatrixSource(rows, list("abcd"))
        for slot, rows in zip(layout.names, tables, strict=True)
    }
    given = dict.fromkeys(layout.names, choices)
    ran = simulation.Session(params, layout, data, 1, choices=given).to_the_end()
    found = []
    for slot in layout.names:
        outcome = ran.outcomes[slot]
        assert outcome.cluster_sizes is not None
        sizes = outcome.cluster_sizes.tolist()
        own = np.bincount(outcome.labels[outcome.labels >= 0], minlength=len(sizes))
        found.append(list(oddities(own.tolist(), sizes)))
    return found


@pytest.mark.parametrize("name", PROTOCOLS)
def test_zeros_are_seen_by_those_who_send_them_and_by_the_others(name: str) -> None:
    *others, own = told(PROTOCOLS[name], np.zeros((80, 4)), allow_other_units=True)
    assert all("none of yours" in " ".join(sentences) for sentences in others)
    assert "all of them yours" in " ".join(own)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_parties_of_one_kind_are_told_nothing(name: str) -> None:
    assert told(PROTOCOLS[name], HONEST[160:]) == [[], [], []]


def test_chance_alone_is_told_of_never() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        k, share = int(rng.integers(2, 9)), rng.uniform(0.02, 0.98)
        labels, mine = rng.integers(0, k, 300), rng.random(300) < share
        own = np.bincount(labels[mine], minlength=k).tolist()
        assert not list(oddities(own, np.bincount(labels, minlength=k).tolist()))


@pytest.mark.parametrize(
    ("own", "sizes"), [([0, 0], [9, 9]), ([9, 9], [9, 9]), ([], []), ([0, 1], [0, 2])]
)
def test_who_has_all_rows_or_none_is_told_nothing(
    own: list[int], sizes: list[int]
) -> None:
    assert not list(oddities(own, sizes))


def test_a_table_of_zeros_is_reported_before_sending(
    online: Terminal,
) -> None:
    lines = [f"p{number},0,{number},7" for number in range(12)]
    mixed = online.file("mixed.csv", "\n".join(["id,crp,age,ward", *lines]))
    zeros = online.file(
        "zeros.csv", "\n".join(["id,crp,age", *(f"p{n},0,0" for n in range(12))])
    )
    _, invitation = opened(online)
    given = f"@{online.file('invitation', invitation)}"
    for command, *more in (
        ("check",),
        ("check", "--rehearse"),
        ("run", *accepting(online, invitation)),
    ):
        words = ("party", command, given, "--id-column", "id", *more, "--data")
        said = online(*words, mixed).output
        assert "warning: Nothing but 0: 'crp'." in said, command
        assert "warning: One value in all rows: 'ward'." in said, command
        assert "No column tells" not in said
        if command != "run":
            said = online(*words, zeros).output
            assert "warning: Nothing but 0: 'crp', 'age'." in said, command
            assert "warning: No column tells two rows apart" in said, command
