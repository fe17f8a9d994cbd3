"""The codec writes canonical files, reads arrays without copying, and refuses the rest."""

import json
from typing import Any

import numpy as np
import pytest
import rfc8785
import safetensors
import safetensors.numpy
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from clustering_protocols.common.errors import InvalidArray, Malformed
from clustering_protocols.records import codec

pytestmark = pytest.mark.every_python

DTYPES = [np.dtype(code) for code in ("<f8", "<f4", "<i8", "<i4", "<u8", "u1")]
HEADER = {"kind": "example", "values": {"a": [1, -0.5, None, True, "é"], "b": {}}}
ARRAYS = {
    "points": np.linspace(-1.0, 1.0, 12).reshape(4, 3),
    "labels": np.array([3, 1, 2], dtype=np.int64),
    "flags": np.array([0, 255, 7], dtype=np.uint8),
}

names = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
headers = st.dictionaries(st.text(), trees, max_size=4)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes))
contents = st.dictionaries(names, arrays, max_size=4)


def file(entries: Any, data: bytes = b"") -> bytes:
    """Return a file with any JSON, or any bytes, in the place of its header."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


def described(entries: dict[str, Any], data: bytes = b"", header: Any = "{}") -> bytes:
    return file({"__metadata__": {"coterie": header}, **entries}, data)


def entry(shape: Any, offsets: Any, dtype: Any = "F64") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


# What comes back


@given(header=headers, content=contents)
def test_header_and_arrays_come_back_as_they_were(
    header: dict[str, Any], content: codec.Arrays
) -> None:
    read_header, read = codec.decode(codec.encode(header, content))
    assert read_header == header
    assert_same_arrays(read, content)


def assert_same_arrays(read: codec.Arrays, content: codec.Arrays) -> None:
    assert read.keys() == content.keys()
    for name, array in content.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()


@given(header=headers, content=contents)
def test_the_table_of_a_file_is_canonical_json(
    header: codec.Header, content: codec.Arrays
) -> None:
    written = codec.encode(header, content)
    table = written[8:][: int.from_bytes(written[:8], "little")].rstrip(b" ")
    assert table == rfc8785.dumps(json.loads(table))


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_canonical_text_is_that_of_rfc_8785(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except ValueError:
        with pytest.raises((rfc8785.CanonicalizationError, UnicodeEncodeError)):
            codec.canonical_text(value).encode()
    else:
        assert codec.canonical_text(value).encode() == expected


@given(array=hnp.arrays(np.float64, shapes))
def test_the_memory_layout_does_not_change_the_bytes(
    array: np.ndarray[Any, Any],
) -> None:
    expected = codec.encode({}, {"a": array})
    spread = np.zeros((*array.shape, 2))
    spread[..., 0] = array
    assert codec.encode({}, {"a": np.array(array, order="F")}) == expected
    assert codec.encode({}, {"a": spread[..., 0]}) == expected
    assert codec.encode({}, {"a": array.astype(">f8")}) == expected


def test_arrays_are_read_only_views_of_the_buffer() -> None:
    buffer = bytearray(codec.encode(HEADER, ARRAYS))
    whole = np.frombuffer(buffer, np.uint8)
    _, read = codec.decode(buffer)
    for array in read.values():
        assert np.shares_memory(array, whole)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_the_pieces_of_a_file_are_the_arrays_themselves() -> None:
    _, *data = list(codec.pieces(HEADER, ARRAYS))
    sharing = [
        name
        for name, array in ARRAYS.items()
        if any(np.shares_memory(array, np.frombuffer(p, np.uint8)) for p in data)
    ]
    assert sharing == list(ARRAYS)


def test_every_array_starts_on_a_multiple_of_its_item_size() -> None:
    for length in range(8):
        _, read = codec.decode(codec.encode({"x": "y" * length}, ARRAYS))
        assert all(array.flags.aligned for array in read.values())


# Beside the safetensors library


@given(content=contents)
def test_the_safetensors_library_reads_our_files(content: codec.Arrays) -> None:
    read = safetensors.numpy.load(codec.encode(HEADER, content))
    assert_same_arrays(read, content)


@given(content=contents)
def test_we_read_files_of_the_safetensors_library(content: codec.Arrays) -> None:
    theirs = safetensors.numpy.save(
        dict(content), metadata={"coterie": json.dumps(HEADER)}
    )
    header, read = codec.decode(theirs)
    assert header == HEADER
    assert_same_arrays(read, content)


# What is refused

EIGHT = bytes(8)
EMPTY = b'{"__metadata__":{"coterie":"{}"}}'
NESTED = '{"x":' + "[" * 1000 + "]" * 1000 + "}"
TOO_DEEP = '{"x":' + "[" * codec.MAX_DEPTH + "]" * codec.MAX_DEPTH + "}"
DEEPEST = TOO_DEEP.replace("[]", "")
MALFORMED = {
    "nothing": b"",
    "seven bytes": bytes(7),
    "header length 2^40": (2**40).to_bytes(8, "little") + b"{}",
    "header longer than the file": (len(EMPTY) + 1).to_bytes(8, "little") + EMPTY,
    "header of 64 KiB and one byte": file(EMPTY.ljust(64 * 1024 + 1)),
    "not UTF-8": file(b'{"\xff":1}'),
    "not JSON": file(b"{"),
    "not an object": file([]),
    "nested 1000 deep": file(NESTED.encode()),
    "our header nested 1000 deep": described({}, header=NESTED),
    "our header nested a level too deep": described({}, header=TOO_DEEP),
    "no metadata": file({}),
    "metadata that is a list": file({"__metadata__": ["coterie"]}),
    "another metadata key": file({"__metadata__": {"format": "{}"}}),
    "two metadata keys": file({"__metadata__": {"coterie": "{}", "format": "pt"}}),
    "our header is not text": described({}, header={}),
    "our header is a list": described({}, header="[]"),
    "a name twice": file(
        b'{"__metadata__":{"coterie":"{}"},'
        b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "a key twice in our header": described({}, header='{"a":1,"a":1}'),
    "a key twice deep in our header": described({}, header='{"x":[{"a":1,"a":1}]}'),
    "NaN": described({}, header='{"x":NaN}'),
    "minus infinity": described({}, header='{"x":-Infinity}'),
    "a number over the largest double": described({}, header='{"x":1e999}'),
    "a number of 5000 digits": described({}, header='{"x":' + "1" * 5000 + "}"),
    "a surplus byte": described({"a": entry([1], [0, 8])}, bytes(9)),
    "data without an array": described({}, EIGHT),
    "a gap": described({"a": entry([1], [0, 8]), "b": entry([1], [16, 24])}, bytes(24)),
    "a gap at the start": described({"a": entry([1], [8, 16])}, bytes(16)),
    "an overlap": described(
        {"a": entry([1], [0, 8]), "b": entry([1], [4, 12])}, bytes(12)
    ),
    "the same bytes twice": described(
        {"a": entry([1], [0, 8]), "b": entry([1], [0, 8])}, EIGHT
    ),
    "an end before its begin": described({"a": entry([1], [8, 0])}, EIGHT),
    "more shape than bytes": described({"a": entry([2], [0, 8])}, EIGHT),
    "a negative size": described({"a": entry([-1], [0, 8])}, EIGHT),
    "two negative sizes": described({"a": entry([-1, -1], [0, 8])}, EIGHT),
    "a size of 2^63": described({"a": entry([2**63], [0, 8])}, EIGHT),
    "a product of 2^64": described({"a": entry([2**32, 2**32], [0, 0])}),
    "an empty array of 2^61 rows": described({"a": entry([2**61, 0], [0, 0])}),
    "an empty array of 2^122 rows": described(
        {"a": entry([0, 2**61, 2**61], [0, 0], "U8")}
    ),
    "nine axes": described({"a": entry([1] * 9, [0, 8])}, EIGHT),
    "a size that is a bool": described({"a": entry([True], [0, 8])}, EIGHT),
    "a size that is a float": described({"a": entry([1.0], [0, 8])}, EIGHT),
    "a shape that is a number": described({"a": entry(1, [0, 8])}, EIGHT),
    "three offsets": described({"a": entry([1], [0, 4, 8])}, EIGHT),
    "an entry that is a list": described({"a": []}),
    "an entry without offsets": described({"a": {"dtype": "F64", "shape": [0]}}),
    "an entry with a comment": described({"a": entry([0], [0, 0]) | {"comment": ""}}),
}
INVALID = {
    "float16": described({"a": entry([4], [0, 8], "F16")}, EIGHT),
    "bool": described({"a": entry([8], [0, 8], "BOOL")}, EIGHT),
    "a dtype that is a list": described({"a": entry([1], [0, 8], ["F64"])}, EIGHT),
}
BAD_NAMES = ["../x", "", "A", "a/b", "a\n", "1a", ".a", "é", "a" * 64, "\x00"]


@pytest.mark.threat(6)
@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_file_that_is_not_well_formed_is_refused(content: bytes) -> None:
    with pytest.raises(Malformed):
        codec.decode(content)


@pytest.mark.parametrize("content", INVALID.values(), ids=INVALID)
def test_an_array_of_another_dtype_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidArray):
        codec.decode(content)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_array_name_is_neither_read_nor_written(name: str) -> None:
    with pytest.raises(InvalidArray):
        codec.decode(described({name: entry([1], [0, 8])}, EIGHT))
    with pytest.raises(ValueError, match="not an array name"):
        codec.encode({}, {name: np.zeros(1)})


def test_the_cases_above_fail_for_their_one_fault_alone() -> None:
    content = described({"a": entry([1], [0, 8]), "b": entry([2], [8, 24])}, bytes(24))
    assert codec.decode(content)[1].keys() == {"a", "b"}
    assert codec.decode(file(EMPTY.ljust(64 * 1024))) == ({}, {})


def test_a_file_without_its_last_byte_is_refused_at_every_length() -> None:
    content = codec.encode(HEADER, ARRAYS)
    for length in range(len(content)):
        with pytest.raises(Malformed):
            codec.decode(content[:length])


def test_depth_counts_only_objects_and_lists() -> None:
    deepest = json.loads(DEEPEST)
    assert codec.decode(described({}, header=DEEPEST))[0] == deepest
    flat = {"x": "[" * 1000, "y": '\\"[{' * 1000, "z": [[]] * 1000}
    assert codec.decode(codec.encode(flat, {}))[0] == flat
    for opening in ('"', '{"x":"', '{"x":"\\'):  # a text that is never closed
        with pytest.raises(Malformed):
            codec.load_object(opening + "[" * 1000)


@pytest.mark.parametrize("number", [2.0**53, -1e16, 1e20, 1e21])
def test_a_large_float_is_read_as_a_float(number: float) -> None:
    text = codec.encode({"x": number}, {})
    [value] = codec.decode(text)[0].values()
    assert (value, type(value)) == (number, float)


def test_a_header_over_64_kib_is_not_written() -> None:
    with pytest.raises(ValueError, match="header"):
        codec.encode({"x": "y" * 64 * 1024}, {})


# Whatever bytes come, the reader answers with one of its two refusals

VALID = codec.encode(HEADER, ARRAYS)
positions = st.integers(0, len(VALID))
edits = st.lists(
    st.tuples(positions, st.integers(0, 3), st.binary(max_size=4)),
    min_size=1,
    max_size=4,
)


def assert_reads_or_refuses(content: bytes) -> None:
    try:
        _, read = codec.decode(content)
    except (Malformed, InvalidArray):
        return
    length = int.from_bytes(content[:8], "little")
    assert 8 + length + sum(array.nbytes for array in read.values()) == len(content)


@given(edits=edits)
@pytest.mark.threat(23)
def test_a_damaged_file_is_read_whole_or_refused(
    edits: list[tuple[int, int, bytes]],
) -> None:
    content = VALID
    for position, removed, inserted in edits:
        content = content[:position] + inserted + content[position + removed :]
    assert_reads_or_refuses(content)
