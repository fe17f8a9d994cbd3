"""What a session of data collaboration takes: an upload of rows and anchors."""

from __future__ import annotations

from clustering_protocols.common.limits import are_held, graph_rows
from clustering_protocols.contract.sizing import WORD, Extent, Sizes

from . import anchors
from .params import DataCollaboration

_SPACE_COPIES = 3  # the common space, what k-means sorts, and a block's temporaries
_ROW_WORDS = 6  # distances, labels, and those as results
_GRAPH = 120  # words of ten neighbours, symmetrised and scaled, and Lanczos' vectors


class DcSizes(Sizes[DataCollaboration]):
    """What a session of data collaboration takes."""

    def upload_bytes(self, params: DataCollaboration, extent: Extent) -> int:
        """Return the bytes of own rows and anchors after projection.

        Anchors that a party makes itself also go to the others of its column group.
        """
        r = anchors.n_anchors(params.anchor, extent.features)
        width = extent.party_features - params.leaves_one_out
        others = extent.layout.n_row_groups - 1
        own_anchors = r * extent.party_features * others * params.synthesises_anchors
        return WORD * ((extent.party_rows + r) * width + own_anchors)

    def memory_bytes(self, params: DataCollaboration, extent: Extent) -> int:
        """Return the bytes of the common space, its maps, and a graph if there is one."""
        n = extent.rows
        spectral = params.algorithm == "spectral"
        of_rows = n if are_held(n, extent.features) else 0
        held = graph_rows(n) if spectral else of_rows
        per_held = _SPACE_COPIES * extent.features + spectral * (
            _GRAPH + _SPACE_COPIES * params.n_clusters
        )
        r = anchors.n_anchors(params.anchor, extent.features)
        maps = 4 * r * extent.features * extent.layout.n_row_groups
        return WORD * (n * _ROW_WORDS + held * per_held + maps)
