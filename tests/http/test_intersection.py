"""Intersections over real HTTP: parties join with other rows; what is kept, and ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from support import guesses
from support.analyst_process import Analyst, Crowd
from support.tables import blobs, names, overlapping, parties

from analyst_service.settings import Settings
from analyst_service.storage.models import Base
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    OverlapTooSmall,
    ShapeConflict,
)
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment
from coterie import Policy
from party_sdk.party.ledger import Ledger

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
    digest = crowd.party("r1c1").folder.load_agreement() or b""
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


def test_disjoint_rows_end_the_session_for_everybody(gather: Gather) -> None:
    split = parties(X, [list(range(20)), list(range(20, 45))])
    crowd = gather(params("ecdh"), split)
    crowd.start()
    with pytest.raises(
        OverlapTooSmall, match="have 0 to 5 % of the smallest table in common"
    ):
        crowd.join()
    assert {type(error) for error in crowd.errors.values()} == {OverlapTooSmall}
    status = crowd.session.status()
    assert (status.state, status.reason) == ("failed", "overlap-too-small")


def test_a_party_s_own_minimum_of_rows_holds_for_the_common_ones(
    gather: Gather,
) -> None:
    crowd = gather(params("ecdh"), PARTS)
    crowd.start("r1c2", "r1c3")
    strict = crowd.party("r1c1")
    strict._policy = Policy(
        accepted_risks=frozenset(crowd.session.status().risks),
        minimum_rows=31,
        least_known=0,
    )
    with pytest.raises(
        GuardRefused, match="'minimum_rows' is 31; fewer rows take part"
    ):
        strict.run(PARTS.data["r1c1"])
    entries = strict.folder.ledger.read()
    last = max(entry["round"] for entry in entries if entry["event"] == "sending")
    assert last == 4, "the sixth round selects; in the fifth a leader has no part"
    crowd.session.cancel()


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


def test_rows_that_cannot_be_aligned_are_refused_before_joining(
    gather: Gather,
) -> None:
    crowd = gather(params("ecdh"), PARTS)
    party = crowd.party("r1c1")
    rows = matrix(PARTS.data["r1c1"])
    with pytest.raises(InvalidData, match="--id-column"):
        party.enrol(MatrixSource(rows))
    twice = ["Ada", *names(range(len(rows) - 2)), "ada "]
    with pytest.raises(InvalidData, match="Rows 1 and 35 have the same id"):
        party.enrol(MatrixSource(rows, ids=twice))
    assert crowd.session.status().slots[0].joined_at is None
    party.enrol(PARTS.data["r1c1"])


def test_without_an_intersection_parties_join_with_as_many_rows(gather: Gather) -> None:
    crowd = gather(params("declared"), PARTS)
    crowd.party("r1c1").enrol(PARTS.data["r1c1"])
    with pytest.raises(ShapeConflict, match="36 rows; 'r1c1' of the row group has 35"):
        crowd.party("r1c2").enrol(PARTS.data["r1c2"])


# A party that dies


class Killed(BaseException):
    """Nothing of the product catches this."""


@pytest.mark.parametrize(
    ("slot", "round_", "place"),
    [
        ("r1c1", 4, "write_lines"),
        ("r1c1", 6, "note_receipt"),
        ("r1c3", 3, "note_receipt"),
        ("r1c3", 5, "write_lines"),
    ],
)
def test_a_party_that_dies_in_a_round_goes_on_from_its_folder(
    gather: Gather, monkeypatch: pytest.MonkeyPatch, slot: str, round_: int, place: str
) -> None:
    crowd = gather(params("ecdh"), PARTS)
    crowd.start(*(name for name in PARTS.layout.names if name != slot))
    dying = crowd.party(slot)
    original = getattr(Ledger, place)

    def die(ledger: Ledger, given: tuple[Any, ...], *others: Any) -> None:
        here = given[0] if place == "note_receipt" else json.loads(given[-1])["round"]
        if ledger is dying.folder.ledger and here == round_:
            raise Killed
        original(ledger, given, *others)

    monkeypatch.setattr(Ledger, place, die)
    with pytest.raises(Killed):
        dying.run(PARTS.data[slot])
    result = crowd.party(slot).run(PARTS.data[slot])
    assert result.labels.tolist() == crowd.expected()[slot]
    crowd.join()
