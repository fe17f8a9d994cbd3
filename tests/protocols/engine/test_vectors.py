"""Known answers: bytes beside each record's module that are read, or refused, for good.

``vectors/`` holds encoded records and ``vectors.json``, which says for each file its
kind, and either what stands in it or the problem that refuses it. What several protocols
send lies once, beside the stage that they share. A vector
that fails says that the wire format has changed: sessions under way and other releases
no longer understand it. If that is meant, raise the version of the record, and write
the vectors anew: ``COTERIE_WRITE_VECTORS=1 pytest tests/protocols/engine/test_vectors.py``.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

import clustering_protocols
from clustering_protocols import catalogue
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract import Stage
from clustering_protocols.engine.result_reading import labelled_by
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import item_dtype
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import profiles as profiling

pytestmark = pytest.mark.every_python

ROOT = Path(clustering_protocols.__path__[0])
SIDECAR = "vectors.json"
MAX_BYTES = 4096


def stages(name: str) -> Iterator[Stage]:
    """Yield the stages of all examples of a protocol; the same stage may come again."""
    known = catalogue.protocol(name)
    for example in known.reference().examples():
        yield from known.stages(example.params, example.layout)
        if release := example.sections.get("release"):  # the engine puts it behind them
            yield profiling.stage(release, labelled_by(()), "slot")


def home_of(record: type[Record]) -> str:
    """Return the folder, below the package, of the module that declares a record."""
    module = Path(str(sys.modules[record.__module__].__file__))
    return module.parent.relative_to(ROOT).as_posix()


def all_records() -> dict[str, dict[str, type[Record]]]:
    """Return every record that a stage writes, by home and kind."""
    found: dict[str, dict[str, type[Record]]] = defaultdict(dict)
    for name in catalogue.catalogue():
        for stage in stages(name):
            for record in stage.records:
                known = found[home_of(record)].setdefault(record.kind, record)
                assert known is record, f"two records {record.kind!r} in one folder"
    return dict(found)


RECORDS = all_records()


def described(record: Record) -> dict[str, Any]:
    return {
        "values": record.values,
        "arrays": {
            name: {
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "sha256": sha256(array.tobytes()).hexdigest(),
            }
            for name, array in record.arrays.items()
        },
    }


def complaints(folder: Path) -> list[str]:
    """Return what is wrong with a folder of vectors as a whole."""
    if not (folder / SIDECAR).is_file():
        return [f"{SIDECAR} is missing"]
    vectors = json.loads((folder / SIDECAR).read_text())
    files = {path.name: path for path in folder.iterdir() if path.name != SIDECAR}
    bad = {name for name, vector in vectors.items() if "problem" in vector}
    found = []
    if not bad or not vectors.keys() - bad:
        found.append("good and bad vectors are both needed")
    if vectors.keys() != files.keys():
        found.append(f"{sorted(vectors.keys() ^ files.keys())} stand alone")
    found += [n for n in vectors if ("_bad_" in n) != (n in bad) or n[-7:] != ".arrays"]
    found += [n for n, path in files.items() if path.stat().st_size > MAX_BYTES]
    return found


# Writing them anew


def sample(record: type[Record]) -> Record:
    """Return a record that holds the same on every machine, by its declarations."""
    values, sizes = {}, {}
    for name, field in record.model_fields.items():
        spec = record._specs.get(name)
        if spec is None:
            values[name] = accepted(field.annotation, field.metadata)
            continue
        for symbol in spec.shape:
            sizes.setdefault(symbol, symbol if type(symbol) is int else 2 + len(sizes))
        shape = [sizes[symbol] for symbol in spec.shape]
        dtype = item_dtype(field.annotation)
        step = 0.125 if dtype.kind == "f" else 1
        low = spec.low if spec.low is not None else -2 if dtype.kind in "fi" else 0
        high = spec.high if spec.high is not None else low + 100
        counted = np.arange(np.prod(shape)) * step % (high - low + step)
        values[name] = (low + counted).astype(dtype).reshape(shape)
    return record(**values)


def accepted(annotation: Any, metadata: list[Any]) -> Any:
    """Return a sample of a record inside, or the first of some plain values that fit."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Record):
            found = sample(kind)
            return [found] if get_origin(annotation) is list else found
    strict = ConfigDict(strict=True)
    adapter = TypeAdapter(Annotated[annotation, None, *metadata], config=strict)
    for value in (*get_args(annotation), 0.5, 3, True, "word", "0f" * 32, None, [], {}):
        try:
            return adapter.validate_python(value)
        except ValidationError:
            continue
    raise NotImplementedError(f"no sample of {annotation}")


class Draft:
    """A record's header and arrays, on the way to being spoilt."""

    def __init__(self, record: Record) -> None:
        self.header = record.header()
        self.arrays = dict(record.arrays)
        self.specs = type(record)._specs

    def another_kind(self) -> None:
        self.header["kind"] = "another"

    def another_version(self) -> None:
        self.header["version"] += 1

    def surplus_value(self) -> None:
        self.header["values"]["surplus"] = 1

    def missing_value(self) -> None:
        self.header["values"].popitem()

    def value_of_another_type(self) -> None:
        self.header["values"][next(iter(self.header["values"]))] = [[]]

    def missing_array(self) -> None:
        self.arrays.popitem()

    def surplus_array(self) -> None:
        self.arrays["surplus"] = np.zeros(1)

    def another_dtype(self) -> None:
        name, array = next(iter(self.arrays.items()))
        self.arrays[name] = array.astype(np.float32)

    def another_axis(self) -> None:
        name, array = next(iter(self.arrays.items()))
        self.arrays[name] = array[..., None]

    def two_sizes_of_a_symbol(self) -> None:
        used = [symbol for spec in self.specs.values() for symbol in spec.shape]
        name, axis = next(
            (name, axis)
            for name, spec in self.specs.items()
            for axis, symbol in enumerate(spec.shape)
            if isinstance(symbol, str) and used.count(symbol) > 1
        )
        self.arrays[name] = np.repeat(self.arrays[name], 2, axis=axis)

    def nan(self) -> None:
        name = next(n for n, array in self.arrays.items() if array.dtype.kind == "f")
        self.arrays[name] = np.full_like(self.arrays[name], np.nan)

    def under_the_bound(self) -> None:
        bounds = {name: s.low for name, s in self.specs.items() if s.low is not None}
        name, low = next(iter(bounds.items()))
        self.arrays[name] = np.full_like(self.arrays[name], low - 1)


FAULTS: dict[Callable[[Draft], None], str] = {
    Draft.another_kind: "malformed",
    Draft.another_version: "version-mismatch",
    Draft.surplus_value: "malformed",
    Draft.missing_value: "malformed",
    Draft.value_of_another_type: "malformed",
    Draft.missing_array: "invalid-array",
    Draft.surplus_array: "invalid-array",
    Draft.another_dtype: "invalid-array",
    Draft.another_axis: "invalid-array",
    Draft.two_sizes_of_a_symbol: "invalid-array",
    Draft.nan: "invalid-array",
    Draft.under_the_bound: "invalid-array",
}


def spoilt(record: Record) -> dict[str, tuple[bytes, str]]:
    """Return by fault the bytes and the problem, for all faults that have a place."""
    whole = record.encode()
    found = {
        "truncated": (whole[:-1], "malformed"),
        "surplus_byte": (whole + b"\0", "malformed"),
    }
    for fault, slug in FAULTS.items():
        draft = Draft(record)
        with suppress(KeyError, StopIteration):
            fault(draft)
            found[fault.__name__] = codec.encode(draft.header, draft.arrays), slug
    return found


def write(home: str) -> None:
    """Write the vectors of a folder: every record, and every fault once."""
    samples = {kind: sample(record) for kind, record in RECORDS[home].items()}
    content, sidecar, faults = {}, {}, set()
    for kind, record in sorted(samples.items(), key=lambda i: not i[1].arrays):
        file = f"{kind}.arrays"
        content[file], sidecar[file] = (
            record.encode(),
            {"kind": kind} | described(record),
        )
        for fault, (damaged, slug) in spoilt(record).items():
            if fault not in faults:
                file = f"{kind}_bad_{fault}.arrays"
                content[file], sidecar[file] = damaged, {"kind": kind, "problem": slug}
                faults.add(fault)

    folder = ROOT / home / "vectors"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.arrays"):
        old.unlink()
    for file, damaged in content.items():
        (folder / file).write_bytes(damaged)
    lines = [f"{json.dumps(f)}: {json.dumps(v)}" for f, v in sorted(sidecar.items())]
    (folder / SIDECAR).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if os.environ.get("COTERIE_WRITE_VECTORS") == "1":
    for folder_ in RECORDS:
        write(folder_)


# Reading them


def cases(*, bad: bool) -> list[Any]:
    found = []
    for home in RECORDS:
        sidecar = ROOT / home / "vectors" / SIDECAR
        vectors = json.loads(sidecar.read_text()) if sidecar.is_file() else {}
        for file, vector in vectors.items():
            if ("problem" in vector) == bad:
                case = pytest.param(home, file, vector, id=f"{home}-{file[:-7]}")
                found.append(case)
    return found


def read(home: str, file: str, vector: dict[str, Any]) -> Record:
    record = RECORDS[home][vector["kind"]]
    return record.decode((ROOT / home / "vectors" / file).read_bytes())


@pytest.mark.parametrize(("home", "file", "vector"), cases(bad=False))
def test_a_valid_vector_survives_a_round_trip(
    home: str, file: str, vector: dict[str, Any]
) -> None:
    record = read(home, file, vector)
    assert described(record) == {key: vector[key] for key in ("values", "arrays")}
    assert record.encode() == (ROOT / home / "vectors" / file).read_bytes()


@pytest.mark.parametrize(("home", "file", "vector"), cases(bad=True))
def test_a_bad_vector_is_refused_with_its_problem(
    home: str, file: str, vector: dict[str, Any]
) -> None:
    with pytest.raises(CoterieError) as refused:
        read(home, file, vector)
    assert refused.value.problem.slug == vector["problem"]


@pytest.mark.parametrize("home", RECORDS)
def test_every_folder_has_good_and_bad_vectors_small_and_listed(home: str) -> None:
    assert complaints(ROOT / home / "vectors") == []


@pytest.mark.parametrize("name", catalogue.catalogue())
def test_every_record_of_every_stage_has_a_good_vector(name: str) -> None:
    listed = {(v.values[0], v.values[2]["kind"]) for v in cases(bad=False)}
    sent = {(home_of(r), r.kind) for stage in stages(name) for r in stage.records}
    assert sent <= listed


def test_no_vector_lies_where_no_record_is_declared() -> None:
    lying = {p.parent.relative_to(ROOT).as_posix() for p in ROOT.glob("**/vectors")}
    assert lying == RECORDS.keys()


def test_a_folder_without_good_or_without_bad_vectors_is_found(tmp_path: Path) -> None:
    assert complaints(tmp_path / "vectors") != []
    for file, vector in (
        ("a.arrays", {}),
        ("a_bad_b.arrays", {"problem": "malformed"}),
    ):
        folder = tmp_path / file
        folder.mkdir()
        (folder / file).write_bytes(b"")
        (folder / SIDECAR).write_text(json.dumps({file: vector}))
        assert complaints(folder) == ["good and bad vectors are both needed"]
        (folder / SIDECAR).write_text("{}")
        assert f"['{file}'] stand alone" in complaints(folder)
