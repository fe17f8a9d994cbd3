"""The collaboration maps g_i (equations 15 to 19), and the common space X̂ (equation 20).

Notation of the paper (Kawamata et al., "A new type of federated clustering"):
X̃^anc_ij (r × m̃_ij) the anchor projections of party (i, j); G_i the map of row group i;
m̂ the dimensions of the common space.

The parties' rows are stored as they were sent. If there are many rows, X̂ is never
stored: each pass over X̂ computes its blocks again, which is faster than writing and
reading X̂.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import maths, messages
from .maths import add_products


@dataclass(frozen=True, slots=True, kw_only=True)
class CollaborationMap:
    """The affine map g: x̃ -> x̃ G + g of a row group.

    G: float64 (width, m̂).
    g: float64 (m̂,).
    """

    G: FloatArray = field(repr=False)
    g: FloatArray = field(repr=False)


def isometric_maps(
    blocks: Sequence[FloatArray], n_features: int, engine: Engine = ONE_THREAD
) -> list[CollaborationMap]:
    """Return the maps of one column group onto T = U_1 Σ_1 of its anchor projections.

    blocks: float64 arrays (r, m̃_ij), one for each row group that has this column
        group.
    n_features: m_j, the largest number of dimensions that the anchors of this column
        group can span.

    The c_j centred blocks are joined side by side into W = [X̃^anc_ij - mean]_i / √c_j
    = U Σ V'. The divisor √c_j gives the c_j images of an anchor together the weight of
    one image, so that distances in T = W V_1 are those between anchors. With W = Q R,
    the target T is Q (R V_1) and block i is Q R_i. So U and T need not be formed, and
    each G_ij solves a least-squares problem with as few rows as R has.

    Each column group is aligned separately, because the anchors of different groups are
    independent, and a joint fit would relate them only by chance. If a row group lacks a
    column group, the anchors' mean replaces that group's part of the common space.
    """
    r, count = len(blocks[0]), len(blocks)
    means = [block.mean(axis=0) for block in blocks]
    R = maths.factor_columns(blocks, engine, means)
    target = _leading_components(R, r, n_features) / np.sqrt(count)
    parts = np.split(R, np.cumsum([block.shape[1] for block in blocks])[:-1], axis=1)
    # T is centred, so the best offset takes the mean of the projections to zero
    solutions = [maths.least_squares(part, target) for part in parts]
    return [
        CollaborationMap(G=G, g=-mean @ G)
        for G, mean in zip(solutions, means, strict=True)
    ]


def orthonormal_maps(
    anchors: Sequence[Sequence[FloatArray]], engine: Engine = ONE_THREAD
) -> list[CollaborationMap]:
    """Return the map of each row group to T = U_1 (equations 18 to 20).

    A column of ones is appended to each row group's projections; m̂ is the smallest
    number of columns of any row group's projections. The paper's pseudo-inverse is
    computed as a least-squares solution, with both sides in the coordinates of Q as in
    :func:`isometric_maps`.

    anchors: for each row group, the float64 arrays (r, m̃_ij) of its column groups.
    """
    ones = np.ones((len(anchors[0][0]), 1))
    groups = [[*row_group, ones] for row_group in anchors]
    widths = [sum(block.shape[1] for block in group) for group in groups]
    m_hat = min(widths) - 1
    R = maths.factor_columns([block for group in groups for block in group], engine)
    U, _, _ = np.linalg.svd(R, full_matrices=False)
    parts = np.split(R, np.cumsum(widths)[:-1], axis=1)
    solutions = [maths.least_squares(part, U[:, :m_hat]) for part in parts]
    return [CollaborationMap(G=G[:-1], g=G[-1]) for G in solutions]


def combine_maps(
    maps: Mapping[int, CollaborationMap], dims: Sequence[int]
) -> CollaborationMap:
    """Combine the maps of a row group's column groups into one block-diagonal map.

    dims: for every column group, the number of dimensions of its part of the common
        space.
    """
    edges = np.concatenate([[0], np.cumsum(dims)])
    G = np.zeros((sum(len(m.G) for m in maps.values()), edges[-1]))
    g = np.zeros(edges[-1])
    begin = 0
    for column, mapping in sorted(maps.items()):
        end = begin + len(mapping.G)
        part = slice(edges[column], edges[column + 1])
        G[begin:end, part] = mapping.G
        g[part] = mapping.g
        begin = end
    return CollaborationMap(G=G, g=g)


def _leading_components(R: FloatArray, n_rows: int, n_features: int) -> FloatArray:
    """Return R V_1 = U_1 Σ_1, with at most n_features columns that exceed rounding errors.

    The singular value decomposition is computed from a triangular factor of R', which
    has the same U and Σ, and no more columns than R has rows.
    """
    U, values, _ = np.linalg.svd(maths.qr_r(R.T).T, full_matrices=False)
    threshold = max(n_rows, R.shape[1]) * np.finfo(np.float64).eps * values[0]
    rank = min(int(np.count_nonzero(values > threshold)), n_features)
    if rank == 0:
        raise ProtocolFailed("All anchor projections of a column group are constant.")
    components: FloatArray = U[:, :rank] * values[:rank]
    return components


Cells = Mapping[int, messages.Projections]
"""The projections of one row group, by column group."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPiece:
    """Some rows of one row group, with the map to their images in the common space.

    rows: for each column group, a view of the projections, float64 (b, width).
    parts: for each column group, the map, float64 (width, m), without its columns of
        zeros, and the number of the first column of X̂ to which it contributes.
    shift: float64 (m̂,); the constant part of the map.
    """

    rows: tuple[FloatArray, ...] = field(repr=False)
    parts: tuple[tuple[FloatArray, int], ...] = field(repr=False)
    shift: FloatArray = field(repr=False)

    def write(self, image: FloatArray) -> None:
        """Write the images (b, m̂) of the rows into an array."""
        image[:] = self.shift
        for rows, (G, first) in zip(self.rows, self.parts, strict=True):
            add_products(rows, G, first, image)

    def take(self, numbers: slice | IntArray) -> RowPiece:
        """Return a piece with only the given rows."""
        return RowPiece(
            rows=tuple(rows[numbers] for rows in self.rows),
            parts=self.parts,
            shift=self.shift,
        )

    def __len__(self) -> int:
        return len(self.rows[0])


@dataclass(frozen=True, eq=False)
class CommonSpace(RowBlocks):
    """The common space X̂, or a part of it: the images of row groups, stacked in order."""

    pieces: tuple[RowPiece, ...] = field(repr=False)

    @classmethod
    def of(
        cls, row_groups: Sequence[Cells], maps: Sequence[CollaborationMap]
    ) -> CommonSpace:
        """Build the common space from the row groups and their maps."""
        pieces = []
        for cells, mapping in zip(row_groups, maps, strict=True):
            rows = tuple(cells[column].rows for column in sorted(cells))
            edges = np.cumsum([0, *(block.shape[1] for block in rows)])
            parts = []
            for i, j in pairwise(edges):
                nonzero = np.flatnonzero(mapping.G[i:j].any(axis=0))
                first, last = (nonzero[0], nonzero[-1]) if nonzero.size else (0, -1)
                G = np.ascontiguousarray(mapping.G[i:j, first : last + 1])
                parts.append((G, int(first)))
            pieces.append(RowPiece(rows=rows, parts=tuple(parts), shift=mapping.g))
        return cls(tuple(pieces))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape (n, m̂) of X̂."""
        return sum(map(len, self.pieces)), len(self.pieces[0].shift)

    def part(self, rows: slice) -> CommonSpace:
        """Return the part with these consecutive rows, of one or several row groups."""
        pieces, begin = [], 0
        for piece in self.pieces:
            first = max(rows.start - begin, 0)
            last = min(rows.stop - begin, len(piece))
            if first < last:
                pieces.append(piece.take(slice(first, last)))
            begin += len(piece)
        return CommonSpace(tuple(pieces))

    def load(self) -> FloatArray:
        """Compute the images (n, m̂) of all rows."""
        image, begin = np.empty(self.shape), 0
        for piece in self.pieces:
            end = begin + len(piece)
            piece.write(image[begin:end])
            begin = end
        return image

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the images (s, m̂) of the rows with the given numbers (s,)."""
        image, begin = np.empty((len(numbers), self.shape[1])), 0
        for piece in self.pieces:
            end = begin + len(piece)
            positions = np.flatnonzero((begin <= numbers) & (numbers < end))
            rows = np.empty((len(positions), image.shape[1]))
            piece.take(numbers[positions] - begin).write(rows)
            image[positions] = rows
            begin = end
        return image
