"""Compiles the kernels of a checkout before anything imports them."""

import runpy
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LIBRARY = _ROOT / "clustering_protocols" / "numerics" / "kernels.library"

runpy.run_path(str(_ROOT / "coterie" / "build.py"))["build_kernels"](_LIBRARY)
