"""Intersections over real HTTP: parties join with other rows; what is kept, and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from support import guesses
from support.analyst_process import Analyst, Crowd
from support.tables import blobs, names, overlapping, parties

from analyst_service.settings import Settings
from analyst_service.storage.models import Base
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment
from coterie import Policy

Gather = Callable[..., Crowd]

X = blobs(80)
HELD = overlapping(3, 30, 5)
PARTS = parties(X, HELD)


def params(method: str) -> ProductQuantisation:
    alignment = Alignment.model_validate({"method": method})
    return ProductQuantisation(n_clusters=3, codebook_size=8, alignment=alignment)


@pytest.mark.every_python
def test_http_gives_the_labels_of_the_simulation_and_keeps_no_id(
    gather: Gather, analyst: Analyst
) -> None:
    before = b"\n".join(everything(analyst))
    crowd = gather(params("ecdh"), PARTS)
    crowd.start()
    found = crowd.labels()
    assert found == crowd.expected()
    outside = {slot: labels.count(-1) for slot, labels in found.items()}
    assert outside == {"r1c1": 5, "r1c2": 6, "r1c3": 7}
    held = b"\n".join(everything(analyst))
    for kind in (b"counted", b"shown", b"blinded-ids"):
        assert held.count(kind) > before.count(kind)
    digest = crowd.party("r1c1").folder.agreement or b""
    known = [
        b"",
        crowd.session.id.encode(),
        digest,
        guesses.hashlib.sha256(digest).digest(),
    ]
    everybody = names(sorted({row for rows in HELD for row in rows}))
    assert guesses.found(held, everybody, known) == []


def everything(analyst: Analyst) -> Iterator[bytes]:
    """All that the analyst keeps: every row of its database, every file, its log."""
    settings = Settings(
        database_url=analyst.environment["COTERIE_DATABASE_URL"],
        data_dir=analyst.data_dir,
    )
    engine = sa.create_engine(settings.database)
    with engine.connect() as connection:
        for table in Base.metadata.tables.values():
            for row in connection.execute(sa.select(table)):
                yield from (
                    v if isinstance(v, bytes) else repr(v).encode() for v in row
                )
    engine.dispose()
    for path in analyst.data_dir.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


@pytest.mark.threat(98)
def test_a_far_larger_id_list_is_refused_by_default(
    gather: Gather,
) -> None:
    crowd = gather(params("ecdh"), parties(X, [list(range(11)), list(range(80))]))
    crowd.start("r1c2")
    risks = frozenset(crowd.session.status().risks)
    clinic = crowd.party("r1c1")
    clinic._policy = Policy(accepted_risks=risks, ids_per_row=7, least_known=0)
    with pytest.raises(GuardRefused, match=r"80 ids for your 11 rows.*'ids_per_row'"):
        clinic.run(crowd.data["r1c1"])
    entries = clinic.folder.ledger.read()
    assert [entry["event"] for entry in entries] == ["joining"], "nothing was sent"
    clinic._policy = Policy(accepted_risks=risks, ids_per_row=8, least_known=0)
    clinic.run(crowd.data["r1c1"])
    crowd.join()
    for slot in ("r1c1", "r1c2"):
        told = crowd.party(slot).folder.ledger.read()
        noted = next(e for e in told if e["event"] == "noting")
        assert noted["notes"] == {
            "ids compared in your row group, at most": "r1c1 11, r1c2 80"
        }
        before = [e for e in told if e["number"] < noted["number"]]
        assert max(e.get("round", 0) for e in before) == noted["round"] - 1


# A party that dies
