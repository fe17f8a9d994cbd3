"""Array types, and declarations of arrays in messages.

A declaration is part of the annotation of a message's field::

    projection: Annotated[FloatArray, Spec("n", "width")]

A declaration states a symbolic shape and a range; the type states the dtype. Sender and
receiver check the same declaration, because both build the same message class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
ByteArray = NDArray[np.uint8]
MaskArray = NDArray[np.bool_]

_CHECK_ITEMS = (
    1 << 17
)  # finiteness is checked piece by piece, so that no mask is as large as the array


def item_dtype(annotation: Any) -> np.dtype[Any]:
    """Return the dtype in the type annotation of an array.

    annotation: ``NDArray[T]``, which is ``ndarray[shape, dtype[T]]`` or, with numpy 2.5
        or later on Python 3.12 or later, an alias whose only argument is ``T``.
    """
    item = get_args(annotation)[-1]
    if get_origin(item) is np.dtype:
        (item,) = get_args(item)
    dtype: np.dtype[Any] = np.dtype(item)
    return dtype


@dataclass(frozen=True, slots=True, init=False)
class Spec:
    """The shape and range of an array; the dtype comes from its type.

    *shape: one entry per axis: either a fixed size or a symbol. Equal symbols mean
        equal sizes within a message; if the task states a size for a symbol, it must
        match.
    low, high: inclusive bounds of every item.
    """

    shape: tuple[str | int, ...]
    low: float | None
    high: float | None

    def __init__(
        self, *shape: str | int, low: float | None = None, high: float | None = None
    ) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return a schema that checks an array against this declaration, and freezes it."""
        del handler  # pydantic has no schema for ndarray
        dtype = item_dtype(source)
        return core_schema.no_info_plain_validator_function(
            lambda value: self._check(value, dtype), metadata={"dtype": str(dtype)}
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON schema that describes the array to readers of the catalogue."""
        described: dict[str, Any] = {
            "type": "array",
            "dtype": schema["metadata"]["dtype"],
            "shape": list(self.shape),
        }
        bounds = {"minimum": self.low, "maximum": self.high}
        return described | {k: v for k, v in bounds.items() if v is not None}

    def _check(self, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
        if not isinstance(value, np.ndarray):
            raise _mismatch("an array of {dtype} is missing", dtype=str(dtype))
        if value.dtype != dtype:
            raise _mismatch("dtype {got}, expected {want}", got=value.dtype, want=dtype)
        if value.ndim != len(self.shape):
            raise _mismatch(
                "{got} axes, expected {want}", got=value.ndim, want=self.shape
            )
        self._check_items(value.reshape(-1))
        frozen = value.view()
        frozen.flags.writeable = False
        return frozen

    def _check_items(self, flat: NDArray[Any]) -> None:
        bad = outside = 0
        for begin in range(0, flat.size, _CHECK_ITEMS):
            piece = flat[begin : begin + _CHECK_ITEMS]
            if piece.dtype.kind == "f":
                bad += piece.size - int(np.count_nonzero(np.isfinite(piece)))
            if self.low is not None:
                outside += int(np.count_nonzero(piece < self.low))
            if self.high is not None:
                outside += int(np.count_nonzero(piece > self.high))
        if bad:
            raise _mismatch("{count} items are NaN or infinite", count=bad)
        if outside:
            raise _mismatch(
                "{count} items lie outside [{low}, {high}]",
                count=outside,
                low=self.low,
                high=self.high,
            )


def _mismatch(template: str, **facts: Any) -> PydanticCustomError:
    return PydanticCustomError(
        "invalid_array", template, {key: str(fact) for key, fact in facts.items()}
    )
