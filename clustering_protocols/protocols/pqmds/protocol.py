"""Product quantisation: what a session requires, discloses and risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.limits import fits_in_one_array
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
from clustering_protocols.shared_stages import alignment
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import PqmdsSession, ProductQuantisation, count_codes

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features; for each row, in a secret order, one "
        "coordinate per subspace, or as many as the terms say: which rows share a "
        "cell there, and how far cells lie apart along these coordinates. It alone "
        "computes the clusters, which no party can check."
    ),
    "party": (
        "The cluster of each of its rows, the sizes of all clusters, and the "
        "clusters' centres in its own codes."
    ),
    "coordinator": "Cluster sizes, the inertia, positions of the starts.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees which of your rows share a cell of each subspace, "
        "and how cells lie along one direction.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Anyone with these codes who knows the distribution of your features "
        "can place rows along that direction.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="If a party colludes with the analyst, the two know which codes belong to "
        "whom.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="The other parties know the order in which rows are sent.",
    ),
    "single-feature-codes": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Each feature has codes of its own: a public sample of it shows the "
        "analyst its values up to a cell's width.",
        remedy="sub_dim 2 or more.",
        detail="The terms have sub_dim 1.",
    ),
    "codes-give-features": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Anyone with these codes who knows a few of your rows can read the "
        "features of the others.",
        measured="On our tables R² was .3 to .9 with one coordinate, and .9 to 1 with "
        "all.",
        remedy="coordinates 1, which loses more of the clusters.",
        detail="Several coordinates of each subspace are sent. An analyst who unmixes "
        "the codes comes close to that without knowing any row.",
    ),
    "noise-covers-one-row-once": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="The noise protects one row in this session alone; further sessions, "
        "tables and rows of the same person add up.",
        remedy="The policy 'epsilon_total' caps all sessions over one table.",
        detail="The noise bounds what this session reveals of one row.",
    ),
}


_SPACE_COPIES = 3  # the codes side by side, a copy in k-means, and temporaries
_ROW_WORDS = 12


class PqmdsSizes(Sizes[ProductQuantisation]):
    """Estimates how much a session of product quantisation uploads and holds in memory."""

    def upload_bytes(self, params: ProductQuantisation, extent: Extent) -> int:
        """Return the size in bytes of the codes of all rows."""
        return WORD * extent.rows * count_codes(params, extent.party_features)

    def memory_bytes(self, params: ProductQuantisation, extent: Extent) -> int:
        """Return the bytes of the codes of all parties, side by side."""
        n = extent.rows
        space = count_codes(params, extent.party_features) * extent.parties
        copies = _SPACE_COPIES if fits_in_one_array(n, space) else 0
        return WORD * n * (copies * space + _ROW_WORDS)


METHODS = (
    Method(
        name="kmeans",
        partitionings=("vertical",),
        shapes=("spherical",),
        rounds=RoundBudget.ONE,
        agreement={"vertical": (0.79, 0.98)},
    ),
)


_LARGEST_DEVIATION = (
    0.5  # the largest standard deviation of numbers within a range of 1
)

_role = role_factories(__package__)


class ProductQuantisationProtocol(ClusteringProtocol[ProductQuantisation]):
    """Parties upload a few numbers per sub-vector once; k-means clusters these numbers."""

    title = "Product quantisation with one-dimensional scaling"
    version = 2
    summary = (
        "Columns are split. Each party replaces each small group of features by one "
        "coordinate (or several, as the terms say) of the nearest of some centres, which are "
        "never sent, and uploads the coordinates once; the analyst clusters them."
    )
    params = ProductQuantisation
    paper = (
        "Wang, J., Zhang, J., Chen, X. (2025). A privacy-enhanced multi-"
        "stage dimensionality reduction vertical federated clustering "
        "framework. Electronics 14 (16), 3182. "
        "doi:10.3390/electronics14163182."
    )
    partitionings = ("vertical",)
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS

    methods: ClassVar = METHODS

    def check_params(self, params: ProductQuantisation, layout: Layout) -> None:
        """Raise if the layout splits rows."""
        if layout.n_row_groups > 1:
            raise InvalidParameters(
                "pqmds needs split columns: the codes of two parties with different "
                "rows of the same features come from different codebooks."
            )
        alignment.check_rows_are_shared(params, layout)

    def check_roster(self, session: PqmdsSession) -> None:
        """Raise if there are more clusters than rows, or if a party has a single column.

        The codes of a single column disclose it. With sub_dim 1, a risk code names this
        risk; otherwise nobody has accepted it.
        """
        n_rows, k = session.n_rows(session.slots[0]), session.params.n_clusters
        if k > n_rows:
            raise ProtocolFailed(f"n_clusters is {k}; there are {n_rows} rows.")
        slots = session.slots
        narrow = [slot for slot in slots if session.member(slot).n_columns == 1]
        if narrow and session.params.sub_dim > 1:
            raise ProtocolFailed(
                f"The only column of {', '.join(narrow)} would have codes of its own. "
                "Every party needs two columns, or sub_dim 1 (a risk)."
            )

    def cautions(
        self, params: ProductQuantisation, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Warn if the noise's standard deviation exceeds half the range of the codes."""
        if params.privacy.mechanism == "none":
            return ()
        n_codes = sum(
            count_codes(params, width) * len(layout.column_group(column))
            for column, width in enumerate(widths)
        )
        deviation = 2**0.5 * n_codes / params.privacy.epsilon  # of laplace noise
        if deviation <= _LARGEST_DEVIATION:
            return ()
        sentence = (
            f"With ε = {params.privacy.epsilon:g} for {n_codes} codes, the noise deviates by "
            f"{deviation:.2g} of their range, more than codes can: clusters are lost. "
            "Raise epsilon, or send fewer codes (sub_dim, coordinates)."
        )
        return (sentence,)

    def risks_of(self, params: ProductQuantisation, layout: Layout) -> Sequence[str]:
        """Return the risk codes that follow from the parameters and the layout."""
        codes = ["by-design"]
        if len(layout.slots) > 1:
            codes.append("collusion")
        if params.sub_dim == 1:
            codes.append("single-feature-codes")
        if params.n_coordinates > 1:
            codes.append("codes-give-features")
        if params.privacy.mechanism != "none":
            codes.append("noise-covers-one-row-once")
        return [
            *codes,
            *alignment.risk_codes(params, layout),
            session_risks.BY_DESIGN,
        ]

    def personal_data(self, layout: Layout) -> str:
        """State that a party sends a few numbers for each person."""
        return (
            "A few numbers for each person are sent, rounded to codes: data of single "
            "people, without names or ids."
        )

    def disclosures(
        self, params: ProductQuantisation, layout: Layout
    ) -> frozenset[Disclosure]:
        """Return the disclosures: codes and, with several coordinates, rows' geometry."""
        disclosures = disclosures_to(Reader.OUTSIDE, Kind.VALUES, Kind.LABELS)
        if params.n_coordinates > 1:
            disclosures |= disclosures_to(Reader.OUTSIDE, Kind.GEOMETRY)
        return disclosures | disclosures_to(Reader.GROUP, Kind.LABELS, Kind.MEANS)

    def stages(self, params: ProductQuantisation, layout: Layout) -> Sequence[Stage]:
        """Return the stages: secrets, alignment, and the upload."""
        from clustering_protocols.shared_stages import secrets

        from . import messages

        upload = Stage(
            name="upload",
            analyst=_role("analyst:PqmdsAnalyst"),
            party=_role("party:Encoder"),
            exchanges=(Exchange(messages.Encode, messages.RowCodes),),
            results=(messages.Clusters, messages.Summary),
        )
        return (
            secrets.build_stage("row", "column"),
            alignment.build_stage(params, layout),
            upload,
        )

    def sizing(self) -> Sizes[ProductQuantisation]:
        """Return the estimates of upload and memory."""
        return PqmdsSizes()


PROTOCOL = ProductQuantisationProtocol()
