"""Writes the commit into wheels and source distributions, and compiles the kernels.

Hatchling calls this hook. Without git, as in an image, ``COTERIE_COMMIT`` is the commit.
Without a C compiler, the wheel has no library; Coterie then computes the same results
with numpy, and ``coterie doctor`` says so.
"""

from __future__ import annotations

import os
import runpy
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "coterie/commit"
LIBRARY = "clustering_protocols/numerics/kernels.library"


class BuildHook(BuildHookInterface[Any]):
    """Adds a file that :func:`coterie.build.find_commit` reads, and a library.

    The library is for one platform, but for every Python.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, and add the commit unless git can be asked at run time."""
        root = Path(self.root)
        program = runpy.run_path(str(root / "coterie" / "build.py"))
        build_kernels = program["build_kernels"]
        if version == "editable":
            build_kernels(root / LIBRARY)
            return
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        added = build_data["force_include"]
        library = folder / "kernels.library"
        if self.target_name == "wheel" and build_kernels(library):
            added[str(library)] = LIBRARY
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data.update(pure_python=False, tag=f"py3-none-{platform}")
        if (root / PLACE).exists():
            return
        commit = os.environ.get("COTERIE_COMMIT") or program["find_commit"]()
        if commit:
            written = folder / "commit"
            written.write_text(f"{commit}\n", encoding="ascii")
            added[str(written)] = PLACE
