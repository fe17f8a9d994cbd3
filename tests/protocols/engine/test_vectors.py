"""Known answers: each record still has the bytes that stand beside its module.

``vectors/KIND.arrays`` is a sample of a record, made by its declarations alone. What
several protocols send lies once, beside the stage that they share. A vector that fails
says that the wire format has changed: sessions under way and other releases no longer
understand it. If that is meant, raise the version of the record, and write the vectors
anew: ``COTERIE_WRITE_VECTORS=1 pytest tests/protocols/engine/test_vectors.py``. What a
record refuses stands in ``test_records.py``.
"""

import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

import clustering_protocols
from clustering_protocols import catalogue
from clustering_protocols.engine.signatures import build_outcome_reader
from clustering_protocols.records.arrays import item_dtype
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import profiles as profiling

pytestmark = pytest.mark.every_python

ROOT = Path(clustering_protocols.__path__[0])


def home_of(record: type[Record]) -> str:
    module = Path(str(sys.modules[record.__module__].__file__))
    return module.parent.relative_to(ROOT).as_posix()


def all_records() -> dict[str, dict[str, type[Record]]]:
    found: dict[str, dict[str, type[Record]]] = defaultdict(dict)
    for known in catalogue.catalogue().values():
        for example in known.reference().examples():
            stages = list(known.stages(example.params, example.layout))
            if release := example.sections.get("release"):  # the engine puts it behind
                stages.append(
                    profiling.build_stage(release, build_outcome_reader(()), "slot")
                )
            for record in (record for stage in stages for record in stage.records):
                same = found[home_of(record)].setdefault(record.kind, record)
                assert same is record, f"two records {record.kind!r} in one folder"
    return dict(found)


RECORDS = all_records()


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


VECTORS = {
    ROOT / home / "vectors" / f"{kind}.arrays": record
    for home, records in RECORDS.items()
    for kind, record in records.items()
}

if os.environ.get("COTERIE_WRITE_VECTORS") == "1":
    for old in ROOT.glob("**/vectors/*"):
        old.unlink()
    for path_, record_ in VECTORS.items():
        path_.parent.mkdir(exist_ok=True)
        path_.write_bytes(sample(record_).encode())


@pytest.mark.parametrize(
    ("path", "record"),
    VECTORS.items(),
    ids=[path.relative_to(ROOT).as_posix() for path in VECTORS],
)
def test_a_record_is_written_and_read_as_its_vector(
    path: Path, record: type[Record]
) -> None:
    made, written = sample(record), path.read_bytes() if path.exists() else b""
    assert made.encode() == written, f"{path}: see the docstring of {__file__}"
    read = record.decode(written)
    assert read.values == made.values
    assert read.encode() == written


def test_every_vector_is_of_a_record() -> None:
    assert set(ROOT.glob("**/vectors/*")) == VECTORS.keys()
