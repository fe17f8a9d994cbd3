"""Rows in a file without a name: read as often as asked, whatever becomes of a piece."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pytest

from clustering_protocols.numerics.data_source import BATCH_ROWS, matrix
from party_sdk.tables.table import Spool


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    with TemporaryFile() as found:
        yield found


def test_batches_are_independent_copies_of_the_rows(file: IO[bytes]) -> None:
    X = np.arange(3.0 * (BATCH_ROWS + 5)).reshape(-1, 3)  # no whole number of pages
    spool = Spool(3, file)
    spool.write(X[:100])
    spool.write(X[100:])

    for _ in range(2):
        pieces = list(spool.batches())
        assert [len(piece) for piece in pieces] == [BATCH_ROWS, 5]
        assert np.array_equal(np.concatenate(pieces), X)
        for piece in pieces:
            piece[:] = -1.0
    assert np.array_equal(spool.take(np.array([BATCH_ROWS, 0])), X[[BATCH_ROWS, 0]])


class Table(Spool):
    columns = ("x",)
    ids = None


def test_all_rows_are_read_without_holding_a_map_of_each_piece(file: IO[bytes]) -> None:
    few = resource.getrlimit(resource.RLIMIT_NOFILE)
    table = Table(1, file)
    table.write(np.arange(40.0 * BATCH_ROWS)[:, None])
    opened = len([*Path("/proc/self/fd").iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, few[1]))
    try:
        X = matrix(table)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, few)
    assert np.array_equal(X[:, 0], np.arange(40.0 * BATCH_ROWS))


def test_a_table_without_rows_has_no_pieces(file: IO[bytes]) -> None:
    assert list(Spool(3, file).batches()) == []
