"""Co-occurrences at sites, and sessions of `fccm` that are inspected every round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clustering_protocols import engine, simulation
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.protocols.fccm import CoClustering, messages
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.terms.terms import Layout
from support.attacks import sent_packets
from support.tables import cut_columns


def blocks(n: int = 100, m: int = 90, groups: int = 4, seed: int = 0) -> FloatArray:
    """Return zeros and ones: ones with probability 0.8 where groups meet, else 0.2."""
    objects, items = np.arange(n) % groups, np.arange(m) % groups
    likely = np.where(objects[:, None] == items, 0.8, 0.2)
    return (np.random.default_rng(seed).random((n, m)) < likely).astype(np.float64)


def sites(X: FloatArray, widths: Sequence[int]) -> tuple[Layout, dict[str, DataSource]]:
    """Return a layout and the items of X, in order, at sites of these widths."""
    layout = Layout.lattice(1, len(widths))
    return layout, cut_columns(X, layout, widths)


def side_by_side(memories: Mapping[str, Memory]) -> tuple[int, FloatArray, FloatArray]:
    """Return iterations, U, and W of all items; sites must not differ in U.

    U and W have C columns for each start; iterations are of the start that took most.
    """
    found = [memory.get(messages.Memberships) for memory in memories.values()]
    known = [each for each in found if each is not None]
    assert len({each.objects.tobytes() for each in known}) == 1
    assert len({each.n_iterations.tobytes() for each in known}) == 1
    W = np.vstack([each.items for each in known])
    return int(known[0].n_iterations.max()), known[0].objects, W


class Session(simulation.Session):
    """A session of `fccm`, and where it stood after every iteration.

    found: dict of int to (U, W); after each iteration, rows as they travelled.
    """

    def __init__(
        self, params: CoClustering, X: FloatArray, widths: Sequence[int], **more: Any
    ) -> None:
        layout, data = sites(X, widths)
        super().__init__(params, layout, data, **{"seed": 5, **more})
        self.params, self.X = params, X
        self.found: dict[int, tuple[FloatArray, FloatArray]] = {}

    @property
    def order(self) -> IntArray:
        return self.recall(self.session.slots[0], RowOrder).order

    def follow(self) -> Session:
        """Go on to the end, and keep memberships after every iteration."""
        self.play_until(messages.Add)
        while isinstance(self.move, engine.Opened):
            self.play_round()
            number, U, W = side_by_side(self.memories)
            if number:
                self.found[number] = U, W
        return self

    def kinds(self) -> list[str]:
        return [kind_of(message.payload) for message in self.received_messages]

    def overflowed(self) -> int:
        """Return how many shares said that they could not be encoded."""
        shares = sent_packets(self, "share")
        return sum(bool(each.header.record["values"]["overflows"]) for each in shares)


def kind_of(message: bytes) -> str:
    return str(packets.parse(message).header.record["kind"])
