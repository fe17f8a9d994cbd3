"""Data collaboration clustering (Kawamata et al., "A new type of federated clustering")."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import (
    ClusteringProtocol,
    Example,
    Exchange,
    Kind,
    Reader,
    Shown,
    Stage,
    Trace,
    role,
    to,
)
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.preparation import shared_risks
from clustering_protocols.preparation.alignment import aligning
from clustering_protocols.preparation.statistics import pooling
from clustering_protocols.sizing import Extent, Needs
from clustering_protocols.terms import Layout

from .methods import METHODS
from .params import Anchor, DataCollaboration, DcSession

__all__ = ["PROTOCOL", "Anchor", "DataCollaboration"]


_NARROW = 3
_NARROW_FIDELITY = {"kmeans": (0.13, 0.83), "spectral": (-0.02, 0.72)}
"""Least and largest of parties with two or three columns: ``benchmarks.dials``."""


class DataCollaborationProtocol(ClusteringProtocol[DataCollaboration]):
    """One upload of projected rows and projected anchors; clustering in a common space."""

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
        "upload-shows-distances": (
            "The analyst sees your rows in fewer dimensions, up to a rotation, and with "
            "them nearly all distances between rows; columns of two values (yes or no) "
            "may show there."
        ),
        "colluding-party-opens-column-group": (
            "An analyst who works together with one party of your column group, or who "
            "knows as many rows of any party of it as you send dimensions and one more, "
            "can rebuild your rows but for what is left out of them: one dimension, or "
            "nothing where the terms say dimensions 'all'."
        ),
        "all-dimensions-are-sent": (
            "No dimension of your rows is left out: an analyst who works together with "
            "one party of your column group rebuilds all of them. Leaving one out keeps "
            "between 0 and .94 of the rows further off than 10 % (as measured on tables of "
            "more rows than columns; most where a party has two or three columns), all "
            "where columns are more than rows, and next to nothing "
            "from an analyst who unmixes the upload, unless there are two columns only. "
            "Where numbers are rounded, the analyst finds all features in the upload "
            "alone: 17 of 17 of two tables; terms that say jitter prevent that. A "
            "single column is sent as it is, up to shift and scale; and of a column that "
            "is constant at one party, the analyst reads what the others of its column "
            "group have, as far."
        ),
        "uniform-anchors-can-be-unmixed": (
            "From projections of uniform anchors alone an analyst can separate your "
            "features by independent component analysis; Gaussian anchors prevent it."
        ),
        "own-units-show-directions": (
            "You scale by your own spreads while the anchors have the pooled ones: where "
            "the two differ, the projected anchors show the directions of single features."
        ),
        "anchors-from-first-slots-rows": (
            "The anchors are synthesised from the rows of the leader (first "
            "party) of your column group and known to its other members: they are near to real rows."
        ),
        "coordinates-open-the-row-group": (
            "Each party of your row group gets the coordinates of its rows in the common "
            "space; one that knows some of your rows can rebuild your columns of the "
            "others."
        ),
        "predictor-lets-the-map-out": (
            "Parties get the collaboration map and the centroids: whoever sees one "
            "party's reduced rows can place them in the common space."
        ),
        pooling.RISK_CODE: pooling.RISK_SENTENCE,
        **shared_risks.RISKS,
        **aligning.RISKS,
    }

    choices: ClassVar = {
        "transformer": "A fitted scikit-learn transformer instead of the reduction.",
        "allow_full_width": (
            "Let that transformer leave no dimension out, and data of one dimension go."
        ),
        "rebuild_limit": (
            "The largest share of rows that the self-check may find rebuilt within 10 %, "
            "or of which it may so find the feature that comes out best. Where the terms "
            "say dimensions 'all', a half unless you say otherwise."
        ),
    }

    limits: ClassVar = frozenset({"allow_full_width", "rebuild_limit"})

    methods: ClassVar = METHODS

    def check(self, params: DataCollaboration, layout: Layout) -> None:
        """Refuse an alignment that does not fit, and a predictor without a model."""
        aligning.check(params, layout)
        _check_predictor(params, layout)

    def check_roster(self, session: DcSession) -> None:
        """Refuse anchors or clusters that the roster does not fit."""
        from . import layouts

        layouts.check(session)

    def cautions(
        self, params: DataCollaboration, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Say what leaving a dimension out costs where parties have few."""
        del layout
        narrow = sorted({width for width in widths if 2 <= width <= _NARROW})
        if not narrow or not params.leaves_one_out:
            return ()
        least, largest = _NARROW_FIDELITY[params.algorithm]
        held = " or ".join(map(str, narrow))
        sentence = (
            f"Parties with {held} columns leave one dimension out (dimensions "
            f"'all_but_one'): fidelity was {least} to {largest} on five such sets. With "
            "dimensions 'all' it is 1."
        )
        return (sentence,)

    def risks_of(self, params: DataCollaboration, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["upload-shows-distances", "colluding-party-opens-column-group"]
        if not params.leaves_one_out:
            codes.append("all-dimensions-are-sent")
        if params.anchor.kind == "uniform":
            codes.append("uniform-anchors-can-be-unmixed")
        if params.scaling == "local" and layout.n_row_groups > 1:
            codes.append("own-units-show-directions")
        if params.synthesises_anchors:
            codes.append("anchors-from-first-slots-rows")
        if params.output == "coordinates":
            codes.append("coordinates-open-the-row-group")
        if params.predictor:
            codes.append("predictor-lets-the-map-out")
        pooled = _pooled_statistics(params)
        if pooling.shows_own(layout, **pooled):
            codes.append(pooling.RISK_CODE)
        totals = pooling.masks(layout, **pooled)
        codes += shared_risks.brought(layout, totals=totals, labels=True)
        return codes + aligning.risks(params, layout)

    def shows(self, params: DataCollaboration, layout: Layout) -> frozenset[Shown]:
        """Return rows up to a motion, outside; pooled moments to those who pool them."""
        shown = to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.LABELS)
        shown |= to(Reader.GROUP, Kind.LABELS)
        shown |= pooling.shows(layout, **_pooled_statistics(params))
        if params.output == "coordinates" or params.predictor:
            shown |= to(Reader.ALL, Kind.PLACES)
        return shown

    def stages(self, params: DataCollaboration, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, statistics or anchors if needed, the upload."""
        from clustering_protocols.preparation import secrets

        from . import messages, shared_anchors

        upload = Stage(
            name="upload",
            analyst=role(__name__, "analyst.Collaborator"),
            party=role(__name__, "party.Projector"),
            exchanges=(Exchange(messages.Project, messages.Projections, shows=True),),
            results=(
                messages.RowGroupLabels,
                messages.RowGroupModel,
                messages.Summary,
            ),
            results_to="row",
        )
        return (
            secrets.stage("row", "column"),
            *aligning.stages(params),
            *pooling.stages(layout, **_pooled_statistics(params)),
            *([shared_anchors.stage()] if params.synthesises_anchors else []),
            upload,
        )

    def needs(self, params: DataCollaboration, extent: Extent) -> Needs:
        """Return bytes, memory and work."""
        from . import needs

        return needs.needs(params, extent)

    def examples(self) -> Sequence[Example[DataCollaboration]]:
        """Return the defaults, the paper's text, and each alternative."""
        from . import examples

        return examples.examples()

    def pooled(
        self,
        params: DataCollaboration,
        X: FloatArray,
        trace: Trace[DataCollaboration] | None,
    ) -> IntArray:
        """Return k-means labels on the pooled features."""
        from . import pooled

        return pooled.labels(params, X, trace)


def _pooled_statistics(params: DataCollaboration) -> dict[str, bool]:
    return {"moments": params.needs_moments, "ranges": params.needs_ranges}


def _check_predictor(params: DataCollaboration, layout: Layout) -> None:
    if not params.predictor:
        return
    if layout.n_column_groups > 1:
        raise InvalidParameters(
            "predictor needs one column group: with several, a new row is placed by all "
            "parties of its row group together, which takes another round."
        )
    if params.algorithm != "kmeans":
        raise InvalidParameters(
            "predictor needs algorithm 'kmeans': a spectral embedding says nothing about "
            "rows that were not in its graph."
        )
    if params.reduction == "autoencoder":
        raise InvalidParameters("predictor needs a linear reduction.")


PROTOCOL = DataCollaborationProtocol()
