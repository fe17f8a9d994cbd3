"""What a session of product quantisation takes: one upload of codes."""

from __future__ import annotations

from clustering_protocols.common.limits import are_held
from clustering_protocols.contract.sizing import WORD, Extent, Sizes

from . import subspaces
from .params import ProductQuantisation

_SPACE_COPIES = 3  # the codes side by side, what k-means sorts, and temporaries
_ROW_WORDS = 12


class PqmdsSizes(Sizes[ProductQuantisation]):
    """What a session of product quantisation takes."""

    def upload_bytes(self, params: ProductQuantisation, extent: Extent) -> int:
        """Return the bytes of the codes of all rows."""
        return WORD * extent.rows * _codes(params, extent)

    def memory_bytes(self, params: ProductQuantisation, extent: Extent) -> int:
        """Return the bytes of the codes of all parties side by side."""
        n, space = extent.rows, _codes(params, extent) * extent.parties
        return WORD * n * (are_held(n, space) * _SPACE_COPIES * space + _ROW_WORDS)


def _codes(params: ProductQuantisation, extent: Extent) -> int:
    """Return how many numbers a party sends for each row."""
    return sum(width for _, width in subspaces.of(params, extent.party_features))
