"""Sections 3 and 13: kinds of records, and whether one is of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import records
from .derivations import Refusal

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "string": (str,),
    "number": (int, float),
    "list of string": (list,),
    "list of integer": (list,),
    "list of object": (list,),
    "object": (dict,),
}


class Rule(NamedTuple):
    """Section 3: dtype, axes and bounds of an array."""

    dtype: str
    axes: tuple[str | int, ...]
    low: float = -np.inf
    high: float = np.inf


class Kind(NamedTuple):
    """Section 3: what a record of a kind holds."""

    values: Mapping[str, str] = {}
    arrays: Mapping[str, Rule] = {}
    version: int = 1


@dataclass
class Record:
    """Section 3: a record."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    version: int = 1

    def write(self) -> bytes:
        """Section 3: its bytes."""
        return records.write_record(self.kind, self.values, self.arrays, self.version)


def check_record(
    known: Mapping[str, Kind],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Record:
    """Section 13, each record: kind, version, values, arrays."""
    if set(header) != {"kind", "version", "values"} or header["kind"] not in known:
        raise Refusal("malformed")
    kind, values = known[header["kind"]], header["values"]
    if header["version"] != kind.version:
        raise Refusal("version-mismatch")
    if set(values) != set(kind.values) or any(
        type(values[name]) not in _TYPES[of] for name, of in kind.values.items()
    ):
        raise Refusal("malformed")
    if set(arrays) != set(kind.arrays):
        raise Refusal("invalid-array")
    sizes: dict[str, int] = {}
    for name, rule in kind.arrays.items():
        _check_array(rule, arrays[name], sizes)
    return Record(header["kind"], dict(values), dict(arrays))


def _check_array(rule: Rule, array: NDArray[Any], sizes: dict[str, int]) -> None:
    """Section 13, each record: dtype, shape, bounds, finite numbers."""
    good = array.dtype == np.dtype(rule.dtype) and array.ndim == len(rule.axes)
    if good:
        for axis, size in zip(rule.axes, array.shape, strict=True):
            due = axis if isinstance(axis, int) else sizes.setdefault(axis, size)
            good = good and size == due
        if array.dtype.kind == "f":
            good = good and bool(np.isfinite(array).all())
        inside = (array >= rule.low) & (array <= rule.high)
        good = good and (rule[2:] == (-np.inf, np.inf) or bool(inside.all()))
    if not good:
        raise Refusal("invalid-array")
