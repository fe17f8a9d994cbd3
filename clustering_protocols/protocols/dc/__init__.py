"""Data collaboration clustering (Kawamata et al., "A new type of federated clustering")."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import ClusteringProtocol, Example, Stage
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.preparation import alignment, secrets, statistics
from clustering_protocols.records import Record
from clustering_protocols.terms import Layout

from . import analyst, examples, messages, party, pooled
from .params import Anchor, DataCollaboration, Feature

__all__ = ["PROTOCOL", "Anchor", "DataCollaboration", "Feature"]


class DataCollaborationProtocol(ClusteringProtocol[DataCollaboration]):
    """One upload of projected rows and projected anchors; k-means in a common space."""

    title = "Data collaboration clustering"
    summary = (
        "Rows and columns both split. Each party uploads, once, its rows and common "
        "anchors, both reduced by a private map; the analyst aligns the maps by the "
        "anchors and clusters."
    )
    params = DataCollaboration
    partitionings = ("horizontal", "vertical", "mixed")
    learns: ClassVar = {
        "analyst": (
            "Numbers of rows and features, the reduced rows up to an unknown rotation, "
            "and with them the distances between rows."
        ),
        "party": "The cluster of each of its rows, and the sizes of all clusters.",
        "other parties of the row group": "The clusters of the same rows.",
        "coordinator": "Cluster sizes, the inertia, positions of the starts.",
    }
    risks: ClassVar = {
        "colluding-party-opens-column-group": (
            "An analyst who works together with one party of your column group, or who "
            "knows as many of its rows as you send dimensions and one more, can rebuild "
            "your rows but for the one dimension that is left out."
        ),
        "uniform-anchors-can-be-unmixed": (
            "From projections of uniform anchors alone an analyst can separate your "
            "features by independent component analysis; Gaussian anchors prevent it."
        ),
        statistics.RISK_CODE: statistics.RISK_SENTENCE,
    }

    def check(self, params: DataCollaboration, layout: Layout) -> None:
        """Refuse a lattice with empty cells, and declared features that do not fit."""
        if not layout.regular:
            raise InvalidParameters(
                "Each row group needs a slot in each column group; this layout has "
                f"{len(layout.slots)} slots for {layout.n_row_groups} × "
                f"{layout.n_column_groups}."
            )
        declared = params.features
        if declared is not None and len(declared) != layout.n_column_groups:
            raise InvalidParameters(
                f"features declares {len(declared)} column groups; the layout has "
                f"{layout.n_column_groups}."
            )

    def risks_of(self, params: DataCollaboration, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["colluding-party-opens-column-group"]
        if params.anchor.kind == "uniform":
            codes.append("uniform-anchors-can-be-unmixed")
        if params.features is None and layout.n_row_groups > 1:
            codes.append(statistics.RISK_CODE)
        return codes

    def stages(self, params: DataCollaboration, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, statistics (unless declared), and the upload."""
        upload = Stage(
            name="upload",
            analyst=analyst.Collaborator(),
            party=party.Projector(),
            records=(
                messages.Project,
                messages.Projections,
                messages.Waiting,
                messages.RowGroupLabels,
                messages.Summary,
            ),
        )
        pooling = statistics.stage(
            moments=params.needs_moments, ranges=params.needs_ranges
        )
        return (
            secrets.stage("row", "column"),
            alignment.stage(),
            *([pooling] if params.features is None else []),
            upload,
        )

    def examples(self) -> Sequence[Example[DataCollaboration]]:
        """Return the defaults, the paper's text, and declared statistics."""
        return examples.examples()

    def pooled(
        self, params: DataCollaboration, X: FloatArray, summary: Record | None
    ) -> IntArray:
        """Return k-means labels on the pooled features."""
        return pooled.labels(params, X, summary)


PROTOCOL = DataCollaborationProtocol()
