"""Data collaboration clustering (Kawamata et al., "A new type of federated clustering")."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    PooledReference,
    Reader,
    Stage,
    roles_of,
    to,
)
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout

from .methods import METHODS
from .params import Anchor, DataCollaboration, DcSession
from .risks import LEARNS, RISKS

__all__ = ["PROTOCOL", "Anchor", "DataCollaboration"]


_NARROW = 3
_NARROW_FIDELITY = {"kmeans": (0.13, 0.83), "spectral": (-0.02, 0.72)}
"""Least and largest of parties with two or three columns, on fifteen public sets."""

_role = roles_of(__name__)


class DataCollaborationProtocol(ClusteringProtocol[DataCollaboration]):
    """One upload of projected rows and projected anchors; clustering in a common space."""

    title = "Data collaboration clustering"
    version = 2
    summary = (
        "Rows and columns both split. Each party uploads, once, its rows and common "
        "anchors, both reduced by a private map; the analyst aligns the maps by the "
        "anchors and clusters."
    )
    params = DataCollaboration
    paper = (
        "Kawamata, Y., Kamijo, K., Kihira, M., Toyoda, A., Nakayama, T., "
        "Imakura, A., Sakurai, T., Okada, Y. A new type of federated "
        "clustering: A non-model-sharing approach."
    )
    partitionings = ("horizontal", "vertical", "mixed")
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS

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

    in_simulations: ClassVar = {"dimensions": "all"}

    methods: ClassVar = METHODS

    def check(self, params: DataCollaboration, layout: Layout) -> None:
        """Refuse an alignment that does not fit, and a predictor without a model."""
        row_alignment.check(params, layout)
        _check_predictor(params, layout)

    def may_label_new_rows(self, params: DataCollaboration) -> bool:
        """Return whether parties get the map of their rows."""
        return params.predictor

    def check_roster(self, session: DcSession) -> None:
        """Refuse anchors or clusters that the roster does not fit."""
        from . import layouts

        layouts.check(session)

    def cautions(
        self, params: DataCollaboration, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Say what leaving a dimension out costs where parties have few."""
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
        codes = ["by-design", "collusion"]
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
            if layout.n_column_groups > 1:
                codes.append(session_risks.SOLVABLE)
        if params.predictor:
            codes.append("predictor-lets-the-map-out")
        codes += pooling.risks(layout, **_pooled_statistics(params))
        return [
            *codes,
            *row_alignment.risks(params, layout),
            session_risks.BY_DESIGN,
        ]

    def personal_data(self, layout: Layout) -> str:
        """Say that the upload is of single people."""
        return (
            "One line for each person is sent, reduced and rotated: data of single "
            "people, without names or ids."
        )

    def shows(self, params: DataCollaboration, layout: Layout) -> frozenset[Disclosure]:
        """Return rows up to a motion, outside; pooled moments to those who pool them."""
        shown = to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.LABELS)
        if not params.leaves_one_out:  # coarse steps then show single features
            shown |= to(Reader.OUTSIDE, Kind.VALUES)
        shown |= to(Reader.GROUP, Kind.LABELS)
        shown |= pooling.shows(layout, **_pooled_statistics(params))
        if params.synthesises_anchors:  # from rows of the group's first party
            shown |= to(Reader.GROUP, Kind.VALUES)
        if params.output == "coordinates" or params.predictor:
            shown |= to(Reader.ALL, Kind.PLACES)
        if params.output == "coordinates" and layout.n_column_groups > 1:
            shown |= to(Reader.ALL, Kind.GEOMETRY, Kind.VALUES)
        return shown

    def stages(self, params: DataCollaboration, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, statistics or anchors if needed, the upload."""
        from clustering_protocols.shared_stages import secrets

        from . import messages, shared_anchors

        upload = Stage(
            name="upload",
            analyst=_role("analyst:Collaborator"),
            party=_role("party:Projector"),
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
            *row_alignment.stages(params, layout),
            *pooling.stages(layout, **_pooled_statistics(params)),
            *([shared_anchors.stage()] if params.synthesises_anchors else []),
            upload,
        )

    def sizes(self) -> Sizes[DataCollaboration]:
        """Return bytes, memory and work."""
        from .needs import DcSizes

        return DcSizes()

    def reference(self) -> PooledReference[DataCollaboration]:
        """Return examples, and the pooled run."""
        from . import reference

        return reference


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
