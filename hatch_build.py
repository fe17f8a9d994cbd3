"""Writes the commit into wheels and source distributions: a hook of hatchling.

Where there is no git, as in an image, ``COTERIE_COMMIT`` says it.
"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "coterie/commit"


class CommitHook(BuildHookInterface[Any]):
    """Adds one file, which :func:`coterie.build.find_commit` reads."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Find the commit, unless the checkout itself is installed, where git says it."""
        root = Path(self.root)
        if version == "editable" or (root / PLACE).exists():
            return
        program = runpy.run_path(str(root / "coterie" / "build.py"))
        commit = os.environ.get("COTERIE_COMMIT") or program["find_commit"]()
        if commit:
            self._folder = tempfile.TemporaryDirectory()
            written = Path(self._folder.name) / "commit"
            written.write_text(f"{commit}\n", encoding="ascii")
            build_data["force_include"][str(written)] = PLACE
