"""The common space X̂_i = [X̃_i, 1] G_i (equation 20), a block at a time.

What is held are the parties' rows, as they were sent. Of many rows a block of X̂ is
computed where it is worked on, in each pass anew: that takes less than to write X̂ down
and read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from clustering_protocols.numerics import row_blocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import messages
from .collaboration import CollaborationMap
from .image_kernels import add_products

Cells = Mapping[int, messages.Projections]
"""The projections of one row group, by column group."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapPart:
    """What a map does to one column group, without columns of zeros.

    G: float64 (width, m), C-contiguous.
    first: the first of the columns of X̂ that it adds to.
    """

    G: FloatArray = field(repr=False)
    first: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPiece:
    """Rows of one row group, and the map to their images.

    rows: tuple of float64 (b, width); a view of each column group's.
    parts: of each column group.
    shift: float64 (m̂,).
    """

    rows: tuple[FloatArray, ...] = field(repr=False)
    parts: tuple[MapPart, ...] = field(repr=False)
    shift: FloatArray = field(repr=False)

    def write(self, image: FloatArray) -> None:
        """Write the images (b, m̂)."""
        image[:] = self.shift
        for rows, part in zip(self.rows, self.parts, strict=True):
            add_products(rows, part.G, part.first, image)

    def some(self, numbers: slice | IntArray) -> RowPiece:
        """Return some of the rows."""
        return RowPiece(
            rows=tuple(rows[numbers] for rows in self.rows),
            parts=self.parts,
            shift=self.shift,
        )

    def __len__(self) -> int:
        return len(self.rows[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageBlock:
    """Rows of X̂: those of one row group, or of some that follow each other."""

    first: int
    pieces: tuple[RowPiece, ...] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return how many rows there are."""
        return sum(map(len, self.pieces))

    def load(self) -> FloatArray:
        """Return the images (n_rows, m̂)."""
        image = np.empty((self.n_rows, len(self.pieces[0].shift)))
        begin = 0
        for piece in self.pieces:
            end = begin + len(piece)
            piece.write(image[begin:end])
            begin = end
        return image


@dataclass(frozen=True, slots=True, eq=False)
class CommonSpace:
    """X̂: the rows of all row groups, one below the other."""

    pieces: tuple[RowPiece, ...] = field(repr=False)

    @classmethod
    def of(
        cls, row_groups: Sequence[Cells], maps: Sequence[CollaborationMap]
    ) -> CommonSpace:
        """Return the common space of row groups, each with its map."""
        return cls(tuple(map(_piece, row_groups, maps)))

    @property
    def shape(self) -> tuple[int, int]:
        """Return n and m̂."""
        return sum(map(len, self.pieces)), len(self.pieces[0].shift)

    def blocks(self) -> Iterator[ImageBlock]:
        """Yield all rows in their order; small row groups share a block."""
        most = row_blocks.rows_of_a_block(self.shape[1])
        first, filled = 0, 0
        pieces: list[RowPiece] = []
        for piece in self.pieces:
            begin = 0
            while begin < len(piece):
                size = min(most - filled, len(piece) - begin)
                pieces.append(piece.some(slice(begin, begin + size)))
                begin, filled = begin + size, filled + size
                if filled == most:
                    yield ImageBlock(first=first, pieces=tuple(pieces))
                    first, filled, pieces = first + filled, 0, []
        if pieces:
            yield ImageBlock(first=first, pieces=tuple(pieces))

    def take(self, numbers: IntArray) -> FloatArray:
        """Return some rows (s, m̂) by their numbers (s,)."""
        image = np.empty((len(numbers), self.shape[1]))
        ends = accumulate(map(len, self.pieces))
        for piece, end in zip(self.pieces, ends, strict=True):
            begin = end - len(piece)
            here = np.flatnonzero((begin <= numbers) & (numbers < end))
            of_piece = np.empty((len(here), image.shape[1]))
            piece.some(numbers[here] - begin).write(of_piece)
            image[here] = of_piece
        return image


def _piece(cells: Cells, mapping: CollaborationMap) -> RowPiece:
    rows = tuple(cells[column].rows for column in sorted(cells))
    edges = np.cumsum([0, *(each.shape[1] for each in rows)])
    parts = [_part(mapping.G[i:j]) for i, j in pairwise(edges)]
    return RowPiece(rows=rows, parts=tuple(parts), shift=mapping.g)


def _part(G: FloatArray) -> MapPart:
    """Return a map between its first and last column that is not zero."""
    there = np.flatnonzero(G.any(axis=0))
    first, last = (int(there[0]), int(there[-1])) if there.size else (0, -1)
    return MapPart(G=np.ascontiguousarray(G[:, first : last + 1]), first=first)
