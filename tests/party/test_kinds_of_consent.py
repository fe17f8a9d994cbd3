"""What is sent says what it means, and is shown as tables where it can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustering_protocols import catalogue
from clustering_protocols.contract import Example
from clustering_protocols.engine import packets
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.engine.signatures import build_opening
from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles.messages import (
    ProfileTold,
    encode_profiles,
)

ADDRESS = packets.Address(
    session="s", agreement="0" * 64, slot="a", stage="count", round=3, attempt=1
)
EXAMPLES = [
    pytest.param(example, id=f"{name}-{place}")
    for name, known in catalogue.catalogue().items()
    for place, example in enumerate(known.reference().examples())
]


def sent_by(example: Example[Any]) -> set[type[Record]]:
    """Every kind of record that a party of an example sends."""
    known = catalogue.protocol(catalogue.name_of(example.params))
    stages = [build_opening(), *known.stages(example.params, example.layout)]
    found = {exchange.answer for stage in stages for exchange in stage.exchanges}
    return found | {envelope for stage in stages for envelope in stage.envelopes}


@pytest.mark.parametrize("example", EXAMPLES)
def test_everything_that_is_sent_says_what_it_means(example: Example[Any]) -> None:
    for record in sent_by(example):
        if record.model_fields:
            assert record.meaning.endswith("."), record
            assert 0 < len(record.meaning.split()) <= 25
        if record.reach == "hidden":
            assert "nobody" in record.meaning or "only" in record.meaning


def inspected(record: Record, round_: int = 3) -> Inspection:
    address = ADDRESS.model_copy(update={"round": round_})
    return Inspection.of(packets.write(address, record), {}, records=(type(record),))


def test_a_profile_is_shown_as_a_table() -> None:
    field_ = FieldProfile(
        name="age", n_rows=(40, 60), mean=(50.0, None), spread=(4.0, None), difference=1
    )
    profile = Profile(
        column=0,
        own=False,
        clusters=(0, 1),
        n_rows=(40, 60),
        rounded=True,
        fields=(field_,),
    )
    found = inspected(ProfileTold(text=encode_profiles([profile])))
    assert found.reach == "readable"
    [table] = found.tables
    assert table.columns == ("variable", "cluster 0", "cluster 1")
    assert table.rows == [("rows", "40", "60"), ("age", "50 ± 4", "–")]
    silent = inspected(ProfileTold(text=np.zeros(0, np.uint8)))
    assert silent.reach == "agreement", "an empty answer shows nothing"
