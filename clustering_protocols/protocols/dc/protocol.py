"""Data collaboration clustering: what a session requires, discloses and risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.limits import count_graph_rows, fits_in_one_array
from clustering_protocols.common.suitability import Method, RoundBudget
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    Reader,
    Stage,
    disclosures_to,
    role_factories,
)
from clustering_protocols.contract.sizing import WORD, Extent, Sizes
from clustering_protocols.shared_stages import alignment, statistics
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import (
    COST,
    LEAST_WIDTH,
    WIDE,
    DataCollaboration,
    DcSession,
    count_session_anchors,
)

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features, the reduced rows up to an unknown rotation, "
        "and with them the distances between rows. It alone computes the clusters."
    ),
    "party": "The cluster of each of its rows, and the sizes of all clusters.",
    "other parties of the row group": "The clusters of the same rows.",
    "coordinator": "Cluster sizes, the inertia, positions of the starts.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst reads your rows in fewer dimensions, up to a rotation, "
        "and thus nearly all distances between them.",
        measured="From rounded numbers, a search recovered 2 of 61 features of five "
        "tables.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Columns with two values (yes or no) may be recognisable in the upload.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="An analyst who colludes with one party of your column group can "
        "rebuild your rows.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="So can an analyst who knows enough rows of any party of that group: "
        "one more than the dimensions that you send. Only what is dropped from your "
        "rows stays hidden: one dimension, or nothing if the terms have "
        "dimensions 'all'. The two also read pooled totals of the group, and can "
        "falsify them.",
    ),
    "all-dimensions-are-sent": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="No dimension is dropped: an analyst who colludes with one party of "
        "your column group can rebuild all your rows.",
        measured="From rounded numbers, a search of the upload alone recovered all 27 "
        "features of three tables, and none of the 34 of two others.",
        remedy="dimensions 'all_but_one', the default.",
        detail="If one dimension is dropped, some of the rebuilt rows are wrong by more than "
        "10 %. On tables with more rows than columns, we measured a fraction of 0 to .94, "
        "largest if a party has two or three columns. With more columns than rows, all "
        "rows are wrong by more. Against an analyst who unmixes the upload, almost none "
        "are, unless there are only two columns. A single column is sent as it is, up to "
        "shift and scale. If a column is constant at one party, the analyst reads that "
        "column of the others in its column group to the same extent.",
    ),
    "uniform-anchors-can-be-unmixed": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The analyst can separate your features from projections of uniform "
        "anchors alone.",
        remedy="Gaussian anchors (anchor.kind 'gaussian', the default).",
        detail="It uses independent component analysis.",
    ),
    "own-units-show-directions": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="You scale by your own standard deviations; where these differ from "
        "the pooled ones, the upload shows the directions of single features.",
        remedy="scaling 'shared', the default.",
        detail="The anchors have the pooled standard deviations.",
    ),
    "coordinates-open-the-row-group": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="A party of your row group that knows some of your rows can rebuild "
        "your columns of the other rows.",
        remedy="output 'labels', the default.",
        detail="Each party of your row group receives the coordinates of its rows in "
        "the common space.",
    ),
    "predictor-lets-the-map-out": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="Anyone who sees one party's reduced rows can place them in the "
        "common space, because parties receive the map.",
        remedy="predictor false, the default; new rows then get no labels.",
        detail="Parties receive the collaboration map and the centroids.",
    ),
}


_SPACE_COPIES = 3  # the common space, a copy in k-means, and temporaries of blocks
_ROW_WORDS = 6  # per row: distances, labels, and labels in results
_GRAPH = 120  # words per row: ten neighbours, symmetrised and scaled; Lanczos vectors


class DcSizes(Sizes[DataCollaboration]):
    """Estimates how much a session of data collaboration uploads and holds in memory."""

    def upload_bytes(self, params: DataCollaboration, extent: Extent) -> int:
        """Return the size in bytes of a party's projected rows and anchors."""
        r = params.count_anchors(extent.features)
        width = extent.party_features - params.drops_one_dimension
        return WORD * (extent.party_rows + r) * width

    def memory_bytes(self, params: DataCollaboration, extent: Extent) -> int:
        """Return the bytes of the common space, the maps and any graph of neighbours."""
        n, row_words = extent.rows, _SPACE_COPIES * extent.features
        if params.algorithm == "spectral":
            space_rows = count_graph_rows(n)
            row_words += _GRAPH + _SPACE_COPIES * params.n_clusters
        else:
            space_rows = n if fits_in_one_array(n, extent.features) else 0
        r = params.count_anchors(extent.features)
        maps = 4 * r * extent.features * extent.layout.n_row_groups
        return WORD * (n * _ROW_WORDS + space_rows * row_words + maps)


_method = partial(
    Method,
    partitionings=("horizontal", "vertical", "mixed"),
    rounds=RoundBudget.ONE,
)
METHODS = (
    _method(
        name="kmeans",
        shapes=("spherical",),
        agreement={
            "horizontal": (0.21, 1.0),
            "vertical": (0.75, 1.0),
            "mixed": (0.5, 1.0),
        },
    ),
    _method(
        name="spectral",
        shapes=("arbitrary",),
        params={"algorithm": "spectral"},
        agreement={
            "horizontal": (0.17, 1.0),
            "vertical": (0.39, 1.0),
            "mixed": (0.07, 1.0),
        },
    ),
)


_role = role_factories(__package__)


class DataCollaborationProtocol(ClusteringProtocol[DataCollaboration]):
    """Parties upload projected rows and anchors once, to be clustered together."""

    title = "Data collaboration clustering"
    version = 2
    summary = (
        "Rows and columns may both be split. Each party uploads, once, its rows and "
        "common anchors, both reduced by a private map; the analyst aligns the maps by "
        "the anchors and clusters the rows."
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
        "transformer": "A fitted scikit-learn transformer instead of principal axes.",
        "allow_full_width": (
            "Let a transformer drop no dimension, and allow data of one dimension."
        ),
        "rebuild_limit": (
            "The largest fraction of rows that the self-check may rebuild within 10 %, as "
            "whole rows or in the feature that is rebuilt best. If the terms have "
            "dimensions 'all', you must confirm more than one half unless you set it."
        ),
    }

    limits: ClassVar = frozenset({"allow_full_width", "rebuild_limit"})

    in_simulations: ClassVar = {"dimensions": "all"}

    methods: ClassVar = METHODS

    def check_params(self, params: DataCollaboration, layout: Layout) -> None:
        """Raise if the alignment does not suit the layout or a predictor cannot work."""
        alignment.check_rows_are_shared(params, layout)
        if not params.predictor:
            return
        if layout.n_column_groups > 1:
            raise InvalidParameters(
                "predictor needs one column group: with several, a new row is placed by "
                "all parties of its row group together, which needs another round."
            )
        if params.algorithm != "kmeans":
            raise InvalidParameters(
                "predictor needs algorithm 'kmeans': a spectral embedding says nothing "
                "about rows that were not in its graph."
            )

    def may_label_new_rows(self, params: DataCollaboration) -> bool:
        """Return whether parties receive the map with which they label new rows."""
        return params.predictor

    def check_roster(self, session: DcSession) -> None:
        """Raise if a party has too few columns, or if anchors or rows are too few.

        A linear map of a single column discloses that column, up to an offset and a
        factor. With dimensions 'all', a risk code names this risk. Otherwise nobody has
        accepted it, so each party needs at least two columns.
        """
        params = session.params
        if params.drops_one_dimension:
            slots = session.slots
            narrow = [s for s in slots if session.member(s).n_columns < LEAST_WIDTH]
            if narrow:
                raise ProtocolFailed(
                    f"One column alone of {', '.join(narrow)} would be sent unchanged, "
                    f"up to shift and scale. Every party needs {LEAST_WIDTH} columns, or "
                    "dimensions 'all'."
                )
        n_features = sum(session.column_widths)
        r, minimum = count_session_anchors(session), params.minimum_anchors(n_features)
        if r < minimum:
            raise ProtocolFailed(
                f"anchor.n_rows is {r}; {n_features} features need at least {minimum}."
            )
        n_rows, k = sum(session.row_counts), params.n_clusters
        if k > n_rows:
            raise ProtocolFailed(f"n_clusters is {k}; there are {n_rows} rows.")

    def cautions(
        self, params: DataCollaboration, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Warn that dropping a dimension costs accuracy if parties have few columns."""
        narrow = sorted({width for width in widths if 2 <= width < WIDE})
        if not narrow or not params.drops_one_dimension:
            return ()
        numbers = " or ".join(map(str, narrow))
        sentence = (
            f"Parties with {numbers} columns drop one dimension (dimensions "
            f"'all_but_one'). {COST}; with eight or more, it was as good. With dimensions "
            "'all' nothing is lost."
        )
        return (sentence,)

    def risks_of(self, params: DataCollaboration, layout: Layout) -> Sequence[str]:
        """Return the risk codes that follow from the parameters and the layout."""
        codes = ["by-design", "collusion"]
        if not params.drops_one_dimension:
            codes.append("all-dimensions-are-sent")
        if params.anchor.kind == "uniform":
            codes.append("uniform-anchors-can-be-unmixed")
        if params.scaling == "local" and layout.n_row_groups > 1:
            codes.append("own-units-show-directions")
        if params.output == "coordinates":
            codes.append("coordinates-open-the-row-group")
            if layout.n_column_groups > 1:
                codes.append(session_risks.SOLVABLE)
        if params.predictor:
            codes.append("predictor-lets-the-map-out")
        codes += statistics.risk_codes(layout, **_pooled_statistics(params))
        return [
            *codes,
            *alignment.risk_codes(params, layout),
            session_risks.BY_DESIGN,
        ]

    def personal_data(self, layout: Layout) -> str:
        """State that the upload has one line per person."""
        return (
            "One line for each person is sent, reduced and rotated: data of single "
            "people, without names or ids."
        )

    def disclosures(
        self, params: DataCollaboration, layout: Layout
    ) -> frozenset[Disclosure]:
        """Return the disclosures: rows' geometry to outsiders, moments to parties."""
        disclosures = disclosures_to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.LABELS)
        if not params.drops_one_dimension:  # then rounded values reveal single features
            disclosures |= disclosures_to(Reader.OUTSIDE, Kind.VALUES)
        disclosures |= disclosures_to(Reader.GROUP, Kind.LABELS)
        disclosures |= statistics.disclosures(layout, **_pooled_statistics(params))
        if params.output == "coordinates" or params.predictor:
            disclosures |= disclosures_to(Reader.ALL, Kind.PLACES)
        if params.output == "coordinates" and layout.n_column_groups > 1:
            disclosures |= disclosures_to(Reader.ALL, Kind.GEOMETRY, Kind.VALUES)
        return disclosures

    def stages(self, params: DataCollaboration, layout: Layout) -> Sequence[Stage]:
        """Return the stages, with one for pooled statistics only if parties need these."""
        from clustering_protocols.shared_stages import secrets

        from . import messages

        upload = Stage(
            name="upload",
            analyst=_role("analyst:Collaborator"),
            party=_role("party:Projector"),
            exchanges=(Exchange(messages.Project, messages.Projections),),
            results=(
                messages.RowGroupLabels,
                messages.RowGroupModel,
                messages.Summary,
            ),
            results_to="row",
        )
        return (
            secrets.build_stage("row", "column"),
            alignment.build_stage(params, layout),
            *statistics.build_stages(layout, **_pooled_statistics(params)),
            upload,
        )

    def sizing(self) -> Sizes[DataCollaboration]:
        """Return the estimates of upload and memory."""
        return DcSizes()


def _pooled_statistics(params: DataCollaboration) -> dict[str, bool]:
    anchor = params.anchor
    return {
        "moments": params.scaling == "shared" or anchor.kind in {"gaussian", "rotated"},
        "ranges": anchor.kind == "uniform" and anchor.ranges == "pooled",
    }


PROTOCOL = DataCollaborationProtocol()
