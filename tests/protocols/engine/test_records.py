"""Records check their fields when built and read, and never show numbers in errors."""

from hashlib import sha256
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import Field, ValidationError

from clustering_protocols.common.errors import InvalidArray, Malformed, VersionMismatch
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record

pytestmark = pytest.mark.every_python

PRIVATE = 73_519_264  # whatever the text of an error or a repr must not hold


class Example(Record):
    kind = "example"
    version = 3

    count: int = Field(ge=0)
    ratio: float
    mode: Literal["plain", "masked"]
    points: Annotated[FloatArray, Spec("n", 2)]
    weights: Annotated[FloatArray, Spec("n", low=0.0, high=1.0)]
    labels: Annotated[IntArray, Spec("n", low=0)]
    words: Annotated[WordArray, Spec("words")]


VALUES = {"count": 2, "ratio": 0.5, "mode": "plain"}


def sized(n: int, words: int = 1) -> dict[str, Any]:
    return {
        "points": np.full((n, 2), 0.25),
        "weights": np.linspace(0.0, 1.0, n),
        "labels": np.arange(n),
        "words": np.arange(words, dtype=np.uint64),
    }


def example(**changes: Any) -> Example:
    return Example(**{**VALUES, **sized(3), **changes})


def parse(
    values: Any = None, arrays: dict[str, Any] | None = None, **changes: Any
) -> Example:
    values = VALUES if values is None else values
    header = {"kind": "example", "version": 3, "values": values} | changes
    return Example.parse(header, sized(3) if arrays is None else arrays)


# Declarations of arrays


def shown(error: BaseException) -> str:
    causes = [error.__cause__] if error.__cause__ else []
    if error.__context__ and not error.__suppress_context__:
        causes.append(error.__context__)
    return f"{error} {error!r}" + "".join(map(shown, causes))


REFUSED = {
    "float32": {"points": np.full((3, 2), PRIVATE, np.float32)},
    "big-endian": {"points": np.full((3, 2), PRIVATE, ">f8")},
    "int for float": {"weights": np.full(3, PRIVATE)},
    "int32 for int64": {"labels": np.full(3, PRIVATE, np.int32)},
    "signed for unsigned": {"words": np.full(1, PRIVATE)},
    "a list": {"labels": [PRIVATE, 1, 2]},
    "nothing": {"labels": None},
    "one axis less": {"points": np.full(3, float(PRIVATE))},
    "one axis more": {"labels": np.full((3, 1), PRIVATE)},
    "another fixed size": {"points": np.full((3, 3), float(PRIVATE))},
    "two sizes of one symbol": {"labels": np.full(4, PRIVATE)},
    "NaN": {"points": np.array([[PRIVATE, 0.0], [0.0, np.nan], [0.0, 0.0]])},
    "infinity": {"points": np.array([[PRIVATE, 0.0], [0.0, 0.0], [0.0, -np.inf]])},
    "under the low bound": {"weights": np.array([0.0, -1e-300, 0.0])},
    "over the high bound": {"weights": np.array([0.0, 1.0, np.nextafter(1.0, 2.0)])},
    "out of range": {"weights": np.full(3, float(PRIVATE))},
    "a negative label": {"labels": np.array([0, -1, 0])},
}


VALUES_REFUSED = {
    "range": {"count": -PRIVATE},
    "type": {"count": str(PRIVATE)},
    "fraction": {"count": PRIVATE + 0.5},
    "whole number as a float": {"count": float(PRIVATE)},
    "a truth": {"count": True},
    "nothing for a number": {"count": None},
    "text for a float": {"ratio": str(PRIVATE)},
    "infinite": {"ratio": float("inf")},
    "not a number": {"ratio": float("nan")},
    "beyond floats": {"ratio": PRIVATE * 10**400},
    "choice": {"mode": str(PRIVATE)},
    "a list of choices": {"mode": ["plain"]},
    "no text": {"mode": "\ud800"},
    "surplus": {"surplus": PRIVATE},
    "a surplus that is no text": {"\ud800": PRIVATE},
}


@pytest.mark.parametrize("what", [*REFUSED, *VALUES_REFUSED])
def test_what_is_not_as_declared_is_refused_and_not_shown(what: str) -> None:
    arrays, values = REFUSED.get(what, {}), VALUES_REFUSED.get(what, {})
    with pytest.raises(InvalidArray if arrays else Malformed) as received:
        parse(VALUES | values, sized(3) | arrays)
    with pytest.raises(ValidationError) as built:
        example(**values, **arrays)
    assert str(PRIVATE) not in shown(received.value)
    assert str(PRIVATE) not in shown(built.value)


@pytest.mark.parametrize("place", [0, (1 << 17) - 1, 1 << 17, (1 << 18) + 4])
def test_one_nan_is_found_wherever_it_lies_in_a_long_array(place: int) -> None:
    arrays = sized((1 << 18) + 5)
    arrays["weights"][place] = np.nan
    with pytest.raises(InvalidArray, match="1 items are NaN"):
        parse(arrays=arrays)


@pytest.mark.parametrize("number", [-0.0, 5e-324, -5e-324, 1.7976931348623157e308])
def test_extreme_finite_numbers_are_accepted(number: float) -> None:
    read = Example.decode(example(points=np.full((3, 2), number)).encode())
    assert read.points.tobytes() == np.full((3, 2), number).tobytes()


def test_sizes_that_a_task_states_are_required() -> None:
    example().require({"n": 3, "words": 1, "unused": 9})
    with pytest.raises(InvalidArray, match="points has 3 for n, expected 4"):
        example().require({"n": 4})


# Values


@pytest.mark.parametrize(
    "values",
    [{"count": 2, "ratio": 0.5}, {**VALUES, "labels": 1}, [], "count", None],
)
def test_values_of_another_form_are_malformed(values: Any) -> None:
    header = {"kind": "example", "version": 3, "values": values}
    with pytest.raises(Malformed):
        Example.parse(header, sized(3))


def test_an_array_too_few_or_too_many_is_refused() -> None:
    arrays = sized(3)
    with pytest.raises(InvalidArray, match="surplus"):
        parse(arrays=arrays | {"surplus": np.zeros(1)})
    del arrays["labels"]
    with pytest.raises(InvalidArray, match="labels"):
        parse(arrays=arrays)


@pytest.mark.parametrize("kind", ["other", "", None, 1, ["example"], {}])
def test_another_kind_or_other_keys_are_malformed(kind: Any) -> None:
    header = example().header()
    fewer = {"kind": "example", "values": VALUES}
    for changed in (header | {"kind": kind}, header | {"more": 1}, fewer):
        with pytest.raises(Malformed):
            Example.decode(codec.encode(changed, sized(3)))


@pytest.mark.parametrize("version", [2, 4, None, "3", [3]])
def test_another_version_is_a_version_mismatch(version: Any) -> None:
    with pytest.raises(VersionMismatch):
        parse(version=version)


@given(
    count=st.integers(0, 2**53 - 1),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    mode=st.sampled_from(["plain", "masked"]),
    n=st.integers(0, 5),
)
def test_a_record_comes_back_as_it_was(
    count: int, ratio: float, mode: str, n: int
) -> None:
    record = example(count=count, ratio=ratio, mode=mode, **sized(n, n + 1))
    read = Example.decode(record.encode())
    assert read.values == {"count": count, "ratio": ratio, "mode": mode}
    for name, array in record.arrays.items():
        assert np.array_equal(read.arrays[name], array)
    assert read.encode() == record.encode()


# Frozen


def test_a_record_and_its_arrays_cannot_be_changed() -> None:
    record = example()
    with pytest.raises(ValidationError, match="frozen"):
        record.count = 3
    for array in record.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_record_shares_its_array_and_keeps_it_writeable() -> None:
    own = np.zeros((3, 2))
    record = example(points=own)
    assert own.flags.writeable
    assert np.shares_memory(record.points, own)


def test_a_record_of_another_class_is_not_narrowed() -> None:
    class Other(Record):
        kind = "other"

    record = example()
    same = Example.narrow(record)
    assert same is record
    assert same == record  # and not one bool per item of its arrays
    assert record != example()
    with pytest.raises(Malformed, match="Expected 'other', received 'example'"):
        Other.narrow(record)


def test_a_memory_is_a_value_and_keeps_the_newest_of_a_kind() -> None:
    empty = Memory()
    first = empty.remember([example(count=1)])
    second = first.remember([example(count=2)])
    assert empty.get(Example) is None
    counts = [kept.get(Example) for kept in (first, second)]
    assert [record.count for record in counts if record] == [1, 2]


# Silence


def test_a_repr_shows_the_shapes_and_no_numbers() -> None:
    record = example(count=PRIVATE, ratio=float(PRIVATE), **sized(4))
    for text in (repr(record), str(record), f"{record}", repr([record])):
        assert "(4, 2)" in text
        assert str(PRIVATE) not in text
        assert "0.25" not in text
    assert "0.25" not in repr(Memory().remember([record]))


# Packets: a record under way

ADDRESS = packets.Address(
    session="s", agreement="0" * 64, slot="a", stage="only", round=1, attempt=1
)
ENVELOPE = packets.Envelope(
    label=packets.EnvelopeLabel(
        peer="b", kind="example", stage="only", round=1, attempt=1
    ),
    sealed=b"sealed",
)
PACKET = packets.write_packet(ADDRESS, example(), envelopes=[ENVELOPE])


@pytest.mark.parametrize("kind", ["other", None, ["example"], {"example": 1}])
def test_a_packet_with_a_kind_that_its_stage_lacks_is_malformed(kind: Any) -> None:
    header, arrays = codec.decode(PACKET)
    record, inside = codec.decode(arrays["content"].data)
    content = codec.encode({**record, "kind": kind}, inside)
    arrays["content"] = np.frombuffer(content, np.uint8)
    with pytest.raises(Malformed, match="has no place here"):
        packets.parse(codec.encode(header, arrays)).read([Example])


def test_own_fields_travel_beside_the_content_that_is_digested() -> None:
    there = packets.write_packet(ADDRESS, example(), own=["count", "points"])
    other = packets.parse(
        packets.write_packet(ADDRESS, example(count=4), own=["count"])
    )
    same = packets.parse(packets.write_packet(ADDRESS, example(count=3), own=["count"]))
    packet = packets.parse(there)
    assert packet.own == ("count", "points")
    assert packet.read([Example]).values == VALUES
    assert np.array_equal(packet.arrays["points"], sized(3)["points"])
    assert packet.arrays["points"].flags.aligned
    assert packets.encode_packet(packet) == there
    assert other.content_digest == same.content_digest
    assert other.read([Example]) != same.read([Example])


def test_a_digest_is_of_the_bytes_that_travelled() -> None:
    header, arrays = codec.decode(PACKET)
    content = arrays["content"].tobytes()
    length = int.from_bytes(content[:8], "little")
    spaced = content[8 : 8 + length].replace(b",", b", ") + b" " * 16
    spaced = spaced[: len(spaced) // 8 * 8]
    other = len(spaced).to_bytes(8, "little") + spaced + content[8 + length :]
    arrays["content"] = np.frombuffer(other, np.uint8)
    packet = packets.parse(codec.encode(header, arrays))
    assert packet.read([Example]).values == VALUES
    assert packet.content_digest == sha256(other).hexdigest()
    assert packet.content_digest != packets.parse(PACKET).content_digest
