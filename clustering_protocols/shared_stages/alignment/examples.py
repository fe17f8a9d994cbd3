"""What examples of protocols say of their alignment."""

from __future__ import annotations

from typing import Final

from .params import Alignment

BY_MATCH_KEYS: Final = Alignment(
    method="ecdh", match_keys=("person | digits", "person | zero-pad:6")
)
"""Rows linked by two match keys, which the ids of made rows serve as."""
