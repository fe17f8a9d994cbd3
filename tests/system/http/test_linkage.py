"""Rows of common people over real HTTP: labels, and no id in what the analyst keeps."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import pytest
from support import guesses
from support.analyst_process import Analyst, Crowd
from support.tables import blobs, misspelt_people, overlapping_rows, parties

from clustering_protocols import simulation
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment

KEYS = ("name + birth | date", "birth | date + town", "name | soundex + birth | year")
BY_IDS = parties(blobs(80), overlapping_rows(3, 30, 5))
PEOPLE = {slot: misspelt_people(place) for place, slot in enumerate(BY_IDS.data)}
CASES: dict[str, tuple[Alignment, simulation.Split, list[int]]] = {
    "ids": (Alignment(method="ecdh"), BY_IDS, [5, 6, 7]),
    "match keys": (
        Alignment(method="ecdh", match_keys=KEYS),
        replace(BY_IDS, data=PEOPLE),
        [5, 5, 5],
    ),
}


@pytest.mark.every_python
@pytest.mark.parametrize("case", CASES)
def test_http_links_as_the_simulation_and_keeps_no_id(
    gather: Callable[..., Crowd], analyst: Analyst, case: str
) -> None:
    alignment, parts, n_unlinked = CASES[case]
    before = b"\n".join(analyst.kept().values())
    params = ProductQuantisation(n_clusters=3, codebook_size=8, alignment=alignment)
    crowd = gather(params, parts)
    crowd.start()
    found = crowd.labels()
    assert found == crowd.expected()
    assert sorted(labels.count(-1) for labels in found.values()) == n_unlinked
    held = b"\n".join(analyst.kept().values())
    for kind in (b"keys-masked", b"key-tokens", b"masked-keys"):
        assert held.count(kind) > before.count(kind)
    digest = crowd.party("r1c1").stored.agreement or b""
    known = [b"", crowd.session.id.encode(), digest, sha256(digest).digest()]
    everybody = {name for data in parts.data.values() for name in data.ids or ()}
    assert guesses.found(held, everybody, known) == []
    entries = crowd.party("r1c1").stored.ledger.verified_entries()
    notes = next(entry["notes"] for entry in entries if entry["event"] == "noting")
    kind, n = ("ids", 35) if case == "ids" else ("values of match keys", 3 * 35)
    assert notes[f"{kind} compared in your row group, at most"].startswith(
        f"r1c1 {n}, "
    )
