"""Secrets that the environment gives: in a variable, or in the file that another names."""

from __future__ import annotations

import os
from pathlib import Path

from clustering_protocols.common.errors import InvalidParameters


def read_secret_variable(name: str) -> str:
    """Return the text of the file that ``NAME_FILE`` names, or of the variable; or "".

    Raises InvalidParameters if the file cannot be read, or holds no text.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, ValueError):
        raise InvalidParameters(
            f"{name}_FILE names no file of text that may be read here."
        ) from None
