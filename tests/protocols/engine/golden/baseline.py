"""The arithmetic in which golden records are made: the same on every x86-64 processor.

Libraries choose code by the processor that they find, and each choice rounds otherwise;
one bit in a sum is another task, another transcript, and other masks. So a process of
golden records lets them use what every x86-64 processor has, on one thread. What is
compiled here (C) keeps to IEEE's arithmetic and needs no such care.
"""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

TESTS = Path(__file__).parents[3]
_SETTINGS = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}
_COMPUTE = ("numpy", "scipy", "scikit-learn")


def environment() -> dict[str, str]:
    own = os.environ.get("PYTHONPATH")
    paths = [str(TESTS), str(TESTS.parent), *([own] if own else [])]
    return os.environ | _SETTINGS | {"PYTHONPATH": os.pathsep.join(paths)}


def is_ours() -> bool:
    """Return whether this process computes in that arithmetic."""
    return all(os.environ.get(name) == each for name, each in _SETTINGS.items())


def start_again() -> None:
    command = [sys.executable, "-m", "tests.protocols.engine.golden", *sys.argv[1:]]
    os.execve(sys.executable, command, environment())


def computed_by() -> dict[str, str]:
    """Return what decides how numbers are rounded, but for the settings above."""
    return {"machine": platform.machine()} | {name: version(name) for name in _COMPUTE}
