"""The party role: quantise the rows, send coordinates of each sub-vector."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, PrivacySpending, Reply
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.terms.session_risks import ONE_FIELD

from . import declared_codes, kernels, messages, release, selfcheck, subspaces
from .kernels import EncodedRows
from .params import PqmdsContext, Privacy, ProductQuantisation

_NEW_ROWS = (
    "One party's codes do not place a new row. It takes a further round, in which every "
    "party encodes the same new rows in the same order by the codebooks of this session."
)


class Encoder(
    PartyRole[ProductQuantisation, messages.Encode, Record, messages.Clusters]
):
    """One round: codes out, labels and abstract centres back."""

    def reply(
        self, context: PqmdsContext, task: messages.Encode, data: DataSource
    ) -> Reply:
        """Return the codes, rows in the row group's secret order."""
        if context.memory.get(messages.CodebookSizes) is not None:
            raise ProtocolFailed("The analyst asks for a second upload.")
        params = context.session.params
        if len(data.columns) == 1 and params.sub_dim > 1:
            raise GuardRefused(
                "The data have one feature, which would have codes of its own. The terms "
                "do not list that risk, because sub_dim is larger than 1."
            )
        X = matrix(data)
        encoded, released = _encode_rows(context, X)
        cells = subspaces.of(params, X.shape[1])
        found = selfcheck.compute_recovery(X, released, cells)
        largest = int(encoded.sizes.max())
        order = context.recall(RowOrder).order
        return Reply(
            contribution=messages.RowCodes(codes=released[order]),
            remember=[
                messages.CodebookSizes(sizes=encoded.sizes),
                _build_spending(params.privacy),
            ],
            notes={
                **selfcheck.notes(params, found, largest, len(X)),
                **_privacy(context, params.privacy),
            },
            asks=_build_question(context, cells),
        )

    def conclude(
        self, context: PqmdsContext, result: messages.Clusters, data: DataSource | None
    ) -> Outcome:
        """Return the labels in the order of the party's own rows."""
        order = context.recall(RowOrder)
        sizes = context.recall(messages.CodebookSizes).sizes
        width = subspaces.counts(context.session)[context.slot.name]
        result.require({"n": len(order.order), "s": width})
        return Outcome(
            labels=order.restore(result.labels),
            cluster_sizes=result.cluster_sizes,
            centroids=result.centroids,
            report={
                "codes per row": width,
                "centres per subspace": f"{sizes.min()} to {sizes.max()}",
                "new rows": _NEW_ROWS,
                **_privacy(context, context.session.params.privacy),
            },
        )


def _build_question(context: PqmdsContext, cells: Sequence[tuple[slice, int]]) -> str:
    """Return the question about fields whose columns have a subspace to themselves.

    Levels of a category do: their codes say which rows have the same level. With sub_dim
    1 the terms list that risk, and noise covers it.
    """
    params = context.session.params
    plan = context.session.terms.plan(context.slot.name)
    noisy = params.privacy.mechanism != "none"
    if plan is None or noisy or params.sub_dim == 1 or context.choices.get(ONE_FIELD):
        return ""
    groups = [set(plan.sources[features]) for features, _ in cells]
    alone = sorted({name for group in groups if len(group) == 1 for name in group})
    if not alone:
        return ""
    return (
        f"Some codes are of one field alone ({alone[0]!r}; {len(alone)} in all): the "
        "analyst reads which rows have the same value of it. Nothing of this was sent. "
        f"Run again with --choice {ONE_FIELD}=true if it may leave."
    )


def _encode_rows(
    context: PqmdsContext, X: FloatArray
) -> tuple[EncodedRows, FloatArray]:
    """Return what becomes of the rows, and the codes (n, s) that may leave."""
    params = context.session.params
    # one codebook whatever the attempt: the cells of two would cut each other
    stream = context.lasting_stream("codebooks")
    session, slot = context.session, context.slot.name
    if params.privacy.mechanism == "none":
        units = session.units(slot, X.std(axis=0))
        encoded = kernels.encode(params, X, stream, units)
        return encoded, encoded.codes
    ranges = session.bounds(slot)
    units = session.units(slot, declared_codes.spread(ranges))
    encoded = declared_codes.encode(params, ranges, X, stream, units)
    return encoded, release.release(context, encoded)


def _build_spending(privacy: Privacy) -> PrivacySpending:
    """Return what the session costs a person: without noise, no bound."""
    noisy = privacy.mechanism != "none"
    return PrivacySpending(
        epsilon=privacy.epsilon if noisy else None, delta=privacy.delta
    )


def _privacy(context: PqmdsContext, privacy: Privacy) -> dict[str, object]:
    """Return budget and expense in the words in which the operator reads them."""
    if privacy.mechanism == "none":
        return {}
    spent = release.own_share(context, privacy)
    return {
        "privacy": f"{privacy.mechanism} noise on all that is uploaded of a row",
        "  ε, δ of a person, all parties": f"{privacy.epsilon:.4g}, {privacy.delta:.4g}",
        "  of these spent by this party": f"{spent.epsilon:.4g}, {spent.delta:.4g}",
    }
