"""Functions compiled to machine code at their first call (decision record 12).

For loops over integers and indices that numpy would spread over many passes through
memory. The compiled code is kept between processes: beside the source where that folder
can be written, else in the user's cache folder, else (a read-only installation without
a home) nowhere, and then each process compiles anew. ``NUMBA_CACHE_DIR`` names another
folder. What is kept is good for the function's own file as it is: anyone who changes a
compiled helper in another file removes ``__pycache__/*.nb?`` by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
from numba import njit

_P = ParamSpec("_P")
_R = TypeVar("_R")


_refuses: Final = ContextVar("_refuses", default=False)  # each thread has its own


class _NoSciPy:
    """Finds no module of SciPy for the thread that refuses them."""

    def find_spec(self, name: str, *where: object) -> None:
        if _refuses.get() and name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError(name)


@contextmanager
def _without_scipy() -> Iterator[None]:
    finder, before = _NoSciPy(), _refuses.set(True)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _refuses.reset(before)


# The first compiled function of a process has numba import this, which asks whether
# SciPy's BLAS is there: a quarter of a second, for products of matrices that no function
# of ours takes. Those of others get it all the same when they are compiled, but for
# ``np.convolve`` and ``np.correlate``, whose loops numba writes out then.
with _without_scipy():
    import numba.np.arraymath  # noqa: F401  imported for later compilations


def compile_kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function compiled; it runs without the interpreter's lock.

    Arithmetic is IEEE's, in the order written: equal on every machine.
    """
    return _compile(function)


def compile_once(n_read: int) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return how to compile a function once for all sorts of arrays that it reads.

    Numba compiles anew for arrays that may not be written to, and for those that have
    gaps; of four such arguments that is sixteen times and more. So they are passed on
    as arrays without gaps that nobody writes to: views of what they are already.

    n_read: the first so many arguments are arrays that the function only reads.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        kernel: Callable[..., _R] = _compile(function)

        @wraps(kernel)
        def run(*given: _P.args, **named: _P.kwargs) -> _R:
            return kernel(*map(_to_read, given[:n_read]), *given[n_read:], **named)

        return run

    return decorate


def _to_read(array: Any) -> Any:
    view = np.ascontiguousarray(array)[:]
    view.flags.writeable = False
    return view


def compile_in_any_order(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function compiled, its additions taken in whichever order is fast.

    For sums of whole numbers below 2^53, which float64 adds up exactly in any order.
    """
    return _compile(function, fastmath={"nsz", "reassoc"})


def _compile(function: Callable[_P, _R], **options: Any) -> Callable[_P, _R]:
    try:
        kept: Callable[_P, _R] = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # numba found no folder that it may write to
        kept = njit(nogil=True, **options)(function)
    return kept


def inline_helper(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a helper of compiled functions, copied into each of them."""
    return njit(inline="always")(function)
