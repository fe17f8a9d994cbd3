"""A party's role: quantise its rows, attack its own codes, and send coordinates.

With one coordinate, the attacker knows how each feature is distributed. The attacker
sorts the codes of a subspace, and assigns to each code the value of the same rank in a
public sample of the feature (frequency matching; Naveed, Kamara, Wright, CCS 2015). The
party runs the attack on its own upload, with its own rows as the best possible sample.

With several coordinates, the attacker knows some rows, and regresses each feature on
the codes of its subspace by least squares. The party fits the regression to all of its
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, PrivacySpending, Reply
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.terms.session_risks import ONE_FIELD

from . import maths, messages, release
from .maths import EncodedRows
from .params import PqmdsContext, Privacy, ProductQuantisation, n_codes_of, subspaces_of

_SAMPLE: Final = 4096  # rows of the self-check, enough for two digits
_FEW_ROWS: Final = 20  # rows per centre; with fewer, cells hold a handful of people


def compute_recovery(
    X: FloatArray, codes: FloatArray, subspaces: Sequence[tuple[slice, int]]
) -> FloatArray:
    """Return the R² of the attack for each feature that varies.

    X: float64 (n, m).
    codes: float64 (n, s).
    subspaces: for each subspace, its features and its number of columns of codes.
    """
    step = -(-len(X) // _SAMPLE)
    X, codes = X[::step], codes[::step]
    ends = np.cumsum([width for _, width in subspaces])[:-1]
    parts = np.split(codes, ends, axis=1)
    recoveries = []
    for part, (features, _) in zip(parts, subspaces, strict=True):
        subspace = X[:, features]
        for values in subspace.T[subspace.std(axis=0) > 0]:
            if part.shape[1] > 1:
                r2 = _linear_r2(values, part)
            else:
                code = part[:, 0]
                r2 = max(_rank_r2(values, signed) for signed in (code, -code))
            recoveries.append(r2)
    return np.array(recoveries)


def _linear_r2(values: FloatArray, codes: FloatArray) -> float:
    """Return R² of the linear regression of values (n,) on codes (n, c)."""
    A, b = codes - codes.mean(axis=0), values - values.mean()
    error = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
    return float(1.0 - np.mean(error**2) / values.var())


def _rank_r2(values: FloatArray, code: FloatArray) -> float:
    """Return R² of values (n,) that are guessed from the ranks of codes (n,)."""
    _, inverse, counts = np.unique(code, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(code)
    error = values - np.quantile(values, ranks)[inverse]
    return float(1.0 - np.mean(error**2) / values.var())


def notes(
    params: ProductQuantisation,
    recoveries: FloatArray,
    largest_codebook: int,
    n_rows: int,
) -> dict[str, Any]:
    """Return the results and warnings of the self-check, for the operator.

    recoveries: float64 (number of features that vary,); R² of each feature.
    """
    several = params.n_coordinates > 1
    lines: dict[str, Any] = {
        "self-check": "what an analyst who knows some of your rows recovers of all"
        if several
        else "what an analyst who knows each feature's distribution recovers",
        "  features, largest R²": float(recoveries.max(initial=0.0)),
        "  features, median R²": float(np.median(recoveries))
        if recoveries.size
        else 0.0,
    }
    if params.sub_dim == 1:
        lines["warning"] = (
            "sub_dim is 1: the codes order the rows by each feature, and show the "
            "feature's values up to the width of a cell."
        )
    if several:
        lines["warning"] = (
            f"coordinates is {params.n_coordinates}: anyone who knows a few of your rows can "
            "read the features of the others off their codes, as exactly as R² says."
        )
    if n_rows < _FEW_ROWS * largest_codebook:
        lines["small cells"] = (
            f"{n_rows} rows share {largest_codebook} centres, fewer than {_FEW_ROWS} "
            "rows each: a smaller codebook_size hides more."
        )
    return lines


_NEW_ROWS = (
    "One party's codes do not place a new row. It takes a further round, in which every "
    "party encodes the same new rows in the same order by the codebooks of this session."
)


class Encoder(
    PartyRole[ProductQuantisation, messages.Encode, Record, messages.Clusters]
):
    """Sends codes in one round; receives labels, and cluster centres in its own codes."""

    def reply(
        self, context: PqmdsContext, task: messages.Encode, data: DataSource
    ) -> Reply:
        """Return the codes; rows are in the row group's secret order."""
        if context.memory.get(messages.CodebookSizes) is not None:
            raise ProtocolFailed("The analyst asks for a second upload.")
        params = context.session.params
        X = matrix(data)
        encoded, codes = _encode_rows(context, X)
        subspaces = subspaces_of(params, X.shape[1])
        recoveries = compute_recovery(X, codes, subspaces)
        largest = int(encoded.sizes.max())
        order = context.recall(RowOrder).order
        return Reply(
            contribution=messages.RowCodes(codes=codes[order]),
            remember=[
                messages.CodebookSizes(sizes=encoded.sizes),
                PrivacySpending(  # a release without noise has no bound
                    epsilon=None
                    if params.privacy.mechanism == "none"
                    else params.privacy.epsilon,
                ),
            ],
            notes={
                **notes(params, recoveries, largest, len(X)),
                **_privacy_notes(context, params.privacy),
            },
            asks=_build_question(context, subspaces),
        )

    def conclude(
        self, context: PqmdsContext, result: messages.Clusters, data: DataSource | None
    ) -> Outcome:
        """Return the labels in the order of the rows in the party's table."""
        order = context.recall(RowOrder)
        sizes = context.recall(messages.CodebookSizes).sizes
        width = n_codes_of(context.session)[context.slot.name]
        result.require({"n": len(order.order), "s": width})
        return Outcome(
            labels=order.restore_own_order(result.labels),
            cluster_sizes=result.cluster_sizes,
            centroids=result.centroids,
            report={
                "codes per row": width,
                "centres per subspace": f"{sizes.min()} to {sizes.max()}",
                "new rows": _NEW_ROWS,
                **_privacy_notes(context, context.session.params.privacy),
            },
        )


def _build_question(
    context: PqmdsContext, subspaces: Sequence[tuple[slice, int]]
) -> str:
    """Return a question about subspaces that consist of one field, or "".

    Such a subspace exposes the levels of a category, because rows with the same code
    have the same level. Nothing is asked if noise is added, or if sub_dim is 1, because
    then the terms list this risk.
    """
    params = context.session.params
    plan = context.session.terms.plan(context.slot.name)
    noisy = params.privacy.mechanism != "none"
    if plan is None or noisy or params.sub_dim == 1 or context.choices.get(ONE_FIELD):
        return ""
    groups = [set(plan.sources[features]) for features, _ in subspaces]
    fields = sorted({name for group in groups if len(group) == 1 for name in group})
    if not fields:
        return ""
    return (
        f"Some codes are of one field alone ({fields[0]!r}; {len(fields)} in all): the "
        "analyst reads which rows have the same value of that field. Nothing was sent yet. To "
        f"send it, run again with --choice {ONE_FIELD}=true."
    )


def _encode_rows(
    context: PqmdsContext, X: FloatArray
) -> tuple[EncodedRows, FloatArray]:
    """Return the encoded rows, and the codes (n, s) that are sent."""
    params = context.session.params
    # the same codebook in every attempt: cells of two codebooks intersect in smaller ones
    stream = context.lasting_stream("codebooks")
    session, slot = context.session, context.slot.name
    if params.privacy.mechanism == "none":
        units = session.units(slot, X.std(axis=0))
        Z = maths.scale_rows(params, X, units)
        encoded = maths.encode(params, Z, Z, stream)
        return encoded, encoded.codes
    ranges = session.bounds(slot)
    units = session.units(slot, release.uniform_spread(ranges))
    encoded = release.encode(params, ranges, X, stream, units)
    return encoded, release.release(context, encoded)


def _privacy_notes(context: PqmdsContext, privacy: Privacy) -> dict[str, object]:
    """Return the privacy budget and this party's part of it, for the operator."""
    if privacy.mechanism == "none":
        return {}
    return {
        "privacy": f"{privacy.mechanism} noise on all that is uploaded of a row",
        "  ε of a person, all parties": f"{privacy.epsilon:.4g}",
        "  of this, spent by this party": f"{release.own_share(context, privacy):.4g}",
    }
