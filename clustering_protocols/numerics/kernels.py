"""Loops that run in C if the library was built, and otherwise in numpy.

A kernel is a numpy function and a C function of the same name in ``kernels.c``, which
produces the same bits about ten times as fast (decision record 12). A wheel that was
built with a C compiler contains the library, which is used only with the source from
which it was compiled.
"""

from __future__ import annotations

import ctypes
import math
import pkgutil
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from clustering_protocols.records.arrays import FloatArray

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DTYPES: Final = {
    "FloatArray": np.dtype(np.float64),
    "IntArray": np.dtype(np.int64),
    "WordArray": np.dtype(np.uint64),
    "MaskArray": np.dtype(np.bool_),
}
_SCALARS: Final = {
    "None": None,
    "bool": ctypes.c_bool,
    "float": ctypes.c_double,
    "int": ctypes.c_int64,
}


class _Array(ctypes.Structure):
    """The address and shape of an array; a vector has one column."""

    _fields_ = (
        ("at", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("m", ctypes.c_int64),
    )


def _load_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(__file__.removesuffix("py") + "library")
    except OSError:
        return None
    source = pkgutil.get_data(__package__, "kernels.c") or b""
    digest = (ctypes.c_char * 64).in_dll(library, "source_digest")
    is_current = digest.value == sha256(source).hexdigest().encode()
    return library if is_current else None


_LIBRARY: Final = _load_library()
IS_BUILT: Final = _LIBRARY is not None


def in_c(*outputs: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that calls the C function of the same name, without the GIL.

    Arguments must be positional and annotated as int, float, or an array type of
    :mod:`clustering_protocols.records.arrays` with one or two dimensions.

    outputs: names of the arrays that the kernel writes. They must be contiguous and
        have the annotated dtype, otherwise TypeError is raised. Other arrays are
        converted if needed.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        if _LIBRARY is None:
            return function
        kernel = _LIBRARY[function.__name__.removeprefix("_")]
        *names, returned = function.__annotations__.values()
        arguments = enumerate(function.__annotations__.items())
        kernel.restype = _SCALARS[returned]
        kernel.argtypes = [_SCALARS.get(name) or _Array for name in names]
        arrays = [
            (index, _DTYPES[name], argument not in outputs)
            for index, (argument, name) in arguments
            if name in _DTYPES
        ]

        @wraps(function)
        def run(*args: _P.args, **_: _P.kwargs) -> _R:
            values: list[Any] = list(args)
            for index, dtype, is_read in arrays:
                values[index] = _to_c_array(values[index], dtype, is_read=is_read)
            result: _R = kernel(*values)
            return result

        return run

    return decorate


def _to_c_array(array: Any, dtype: np.dtype[Any], *, is_read: bool) -> _Array:
    if is_read:
        array = np.ascontiguousarray(array, dtype)
    elif array.dtype != dtype or not array.flags.carray:
        raise TypeError("a kernel writes only to contiguous arrays of its own dtype")
    n, m = array.shape if array.ndim == 2 else (array.size, 1)
    c_array = _Array(array.ctypes.data, n, m)
    c_array.array = array  # keep the memory alive while C uses its address
    return c_array


def add_in_order(start: Any, terms: FloatArray) -> Any:
    """Return start plus terms (n, …), added one at a time as in a loop, bit for bit."""
    return np.cumsum(np.concatenate([np.asarray(start)[None], terms]), axis=0)[-1]


_power: Final = np.frompyfunc(math.pow, 2, 1)


def power(base: FloatArray, exponent: float) -> FloatArray:
    """Compute powers in the C library, because numpy's bits depend on the processor."""
    return np.asarray(_power(base, exponent), dtype=np.float64)
