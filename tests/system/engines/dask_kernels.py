"""Kernels for tests, in a module of their own: workers import them by name."""

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clustering_protocols.records.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    rows: tuple[FloatArray, ...] = field(repr=False)
    first: int

    def __post_init__(self) -> None:
        if not all(isinstance(each, np.ndarray) for each in self.rows):
            raise TypeError("rows are arrays")


class Named(NamedTuple):
    piece: Piece
    other: list[dict[str, Any]]


def summed(shift: FloatArray, block: Piece) -> FloatArray:
    return np.concatenate([(rows + shift).sum(axis=0) for rows in block.rows])


def square(block: int) -> int:
    return block * block


def noted(folder: Path, block: int) -> int:
    """Leave a file for each block; the first one of all ends its worker."""
    (folder / f"{block}-{time.monotonic_ns()}").touch()
    time.sleep(0.02)
    return block


def deadly(folder: Path, block: int) -> int:
    """End the first worker that comes to the fifth block, once."""
    if block == 5:
        try:
            (folder / "dead").touch(exist_ok=False)
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def always_deadly(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def row_of(rows: FloatArray, block: int) -> float:
    return float(rows[block].sum())
