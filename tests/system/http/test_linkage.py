"""Rows of common people over real HTTP: labels, what is kept, and limits."""

from collections.abc import Callable

import numpy as np
import pytest
from support import guesses
from support.analyst_process import Analyst, Crowd
from support.tables import blobs, names, overlapping_rows, parties

from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout

Gather = Callable[..., Crowd]

X = blobs(80)
HELD = overlapping_rows(3, 30, 5)
PARTS = parties(X, HELD)


def params(method: str) -> ProductQuantisation:
    alignment = Alignment.model_validate({"method": method})
    return ProductQuantisation(n_clusters=3, codebook_size=8, alignment=alignment)


@pytest.mark.every_python
def test_http_gives_the_labels_of_the_simulation_and_keeps_no_id(
    gather: Gather, analyst: Analyst
) -> None:
    before = b"\n".join(analyst.kept().values())
    crowd = gather(params("ecdh"), PARTS)
    crowd.start()
    found = crowd.labels()
    assert found == crowd.expected()
    outside = {slot: labels.count(-1) for slot, labels in found.items()}
    assert outside == {"r1c1": 5, "r1c2": 6, "r1c3": 7}
    held = b"\n".join(analyst.kept().values())
    for kind in (b"keys-masked", b"key-tokens", b"masked-keys"):
        assert held.count(kind) > before.count(kind)
    digest = crowd.party("r1c1").stored.agreement or b""
    known = [
        b"",
        crowd.session.id.encode(),
        digest,
        guesses.hashlib.sha256(digest).digest(),
    ]
    everybody = names(sorted({row for rows in HELD for row in rows}))
    assert guesses.found(held, everybody, known) == []
    entries = crowd.party("r1c1").stored.ledger.verified_entries()
    noted = next(e["notes"] for e in entries if e["event"] == "noting")
    assert noted["ids compared in your row group, at most"].startswith("r1c1 35, r1c2")


KEYED = Layout.lattice(1, 3)
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
        ids.append(join_parts([spelt, day, f"town {number % 7}"]))
    X = np.random.default_rng(10 + place).normal(size=(len(rows), 2))
    return MatrixSource(X, [f"x{place}", f"y{place}"], ids)


DATA = {slot: people(place) for place, slot in enumerate(KEYED.names)}
LINKED = simulation.Split(
    layout=KEYED,
    rows=[np.arange(200)],
    columns=[np.array([2 * place, 2 * place + 1]) for place in range(3)],
    held={slot: np.arange(35) for slot in KEYED.names},
    data=DATA,
)


def keyed() -> ProductQuantisation:
    alignment = Alignment(method="ecdh", match_keys=KEYS)
    return ProductQuantisation(n_clusters=2, codebook_size=8, alignment=alignment)


@pytest.mark.every_python
def test_http_links_as_the_simulation_and_names_nobody(
    gather: Gather, analyst: Analyst
) -> None:
    crowd = gather(keyed(), LINKED)
    crowd.start()
    found = crowd.labels()
    assert found == crowd.expected()
    assert {labels.count(-1) for labels in found.values()} == {5}
    held = b"\n".join(analyst.kept().values())
    assert b"key-tokens" in held
    known = [b"", crowd.session.id.encode()]
    people_named = [name for data in DATA.values() for name in data.ids or ()]
    assert guesses.found(held, people_named, known) == []
