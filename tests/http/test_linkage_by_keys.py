"""Rows linked by match keys over real HTTP: labels, what the analyst keeps, limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support import guesses
from support.analyst_process import Analyst, Crowd

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout
from coterie import Policy

Gather = Callable[..., Crowd]
LAYOUT = Layout.lattice(1, 3)
KEYS = ("name + birth | date", "birth | date + town", "name | soundex + birth | year")


def people(place: int) -> MatrixSource:
    """Thirty people whom all hold, some of them spelt otherwise, and five of one's own."""
    rows = [*range(30), *range(100 + 10 * place, 105 + 10 * place)]
    order = np.random.default_rng(place).permutation(rows)
    ids = []
    for number in order.tolist():
        day = f"{1900 + number}-03-{1 + number % 28:02}"
        name = f"name{chr(97 + number % 26)}{chr(97 + number // 26)}"
        spelt = name.upper() if number % (place + 2) else f"{name[:4]}x{name[4:]}"
        ids.append(join([spelt, day, f"town {number % 7}"]))
    X = np.random.default_rng(10 + place).normal(size=(len(rows), 2))
    return MatrixSource(X, [f"x{place}", f"y{place}"], ids)


DATA = {slot: people(place) for place, slot in enumerate(LAYOUT.names)}
PARTS = simulation.Split(
    layout=LAYOUT,
    rows=[np.arange(200)],
    columns=[np.array([2 * place, 2 * place + 1]) for place in range(3)],
    held={slot: np.arange(35) for slot in LAYOUT.names},
    data=DATA,
)


def params() -> ProductQuantisation:
    alignment = Alignment(method="ecdh", match_keys=KEYS)
    return ProductQuantisation(n_clusters=2, codebook_size=8, alignment=alignment)


@pytest.mark.every_python
def test_http_links_as_the_simulation_and_names_nobody(
    gather: Gather, analyst: Analyst
) -> None:
    crowd = gather(params(), PARTS)
    crowd.start()
    found = crowd.labels()
    assert found == crowd.expected()
    assert {labels.count(-1) for labels in found.values()} == {5}
    held = b"\n".join(
        path.read_bytes() for path in analyst.data_dir.rglob("*") if path.is_file()
    )
    assert b"key-tokens" in held
    known = [b"", crowd.session.id.encode()]
    names = [name for data in DATA.values() for name in data.ids or ()]
    assert guesses.found(held, names, known) == []


@pytest.mark.threat(98)
def test_match_keys_count_among_the_ids_of_a_row(gather: Gather) -> None:
    crowd = gather(params(), PARTS)
    crowd.start("r1c1", "r1c3")
    risks = frozenset(crowd.session.status().risks)
    careful = crowd.party("r1c2")
    careful._policy = Policy(
        accepted_risks=risks, ids_per_row=2.9, least_known=0, minimum_rows=1
    )
    with pytest.raises(GuardRefused, match="105 values of match keys for your 35 rows"):
        careful.run(DATA["r1c2"])
    entries = careful.folder.ledger.read()
    assert [entry["event"] for entry in entries] == ["joining"], "nothing was sent"
    crowd.session.cancel()
