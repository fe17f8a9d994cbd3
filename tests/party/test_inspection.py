"""What is told of a contribution before it leaves, as tables where it can be read."""

import numpy as np

from clustering_protocols.engine import packets
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.protocols.dummy.messages import Counted
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles.messages import (
    ProfileTold,
    encode_profiles,
)

ADDRESS = packets.Address(
    session="s", agreement="0" * 64, slot="a", stage="count", round=3, attempt=1
)
LABEL = packets.EnvelopeLabel(peer="b", kind="word", stage="count", round=3, attempt=1)


def inspected(
    sealed: bytes, last: int = 2, label: packets.EnvelopeLabel = LABEL
) -> Inspection:
    record = Counted(positions=np.array([0, 1, last]))
    envelope = packets.Envelope(label=label, sealed=sealed)
    return Inspection.of(
        packets.write_packet(ADDRESS, record, envelopes=[envelope]), {}
    )


def test_what_is_sealed_anew_is_asked_about_once() -> None:
    """A process that begins again seals again: other bytes, the same question."""
    first = inspected(b"one")
    assert first.digest == inspected(b"two").digest
    assert first.digest != inspected(b"one", last=1).digest
    label = LABEL.model_copy(update={"peer": "c"})
    assert first.digest != inspected(b"one", label=label).digest


class Figure(Record):
    """A message whose content has no arrays."""

    kind = "figure"

    x: int


class OtherFigure(Figure):
    """The same fields under another kind."""

    kind = "other-figure"


def test_values_and_kind_belong_to_the_question() -> None:
    digests = [
        Inspection.of(packets.write_packet(ADDRESS, record), {}).digest
        for record in (Figure(x=1), Figure(x=1), Figure(x=99), OtherFigure(x=1))
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def told(record: ProfileTold) -> Inspection:
    return Inspection.of(
        packets.write_packet(ADDRESS, record), {}, records=(ProfileTold,)
    )


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
    found = told(ProfileTold(text=encode_profiles([profile])))
    assert found.reach == "readable"
    [table] = found.tables
    assert table.columns == ("variable", "cluster 0", "cluster 1")
    assert table.rows == [("rows", "40", "60"), ("age", "50 ± 4", "–")]
    silent = told(ProfileTold(text=np.zeros(0, np.uint8)))
    assert silent.reach == "agreement", "an empty answer shows nothing"
