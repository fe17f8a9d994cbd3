"""The stages of a session: which there are, what is said in each, who plays them."""

from __future__ import annotations

from collections.abc import Iterator

from clustering_protocols.contract import Exchange, Stage, roles_of
from clustering_protocols.shared_stages import alignment, secrets, starts, sums
from clustering_protocols.terms.terms import Layout

from . import messages
from .params import LosslessFederated

_role = roles_of(__package__)


def setup(params: LosslessFederated, layout: Layout) -> Iterator[Stage]:
    """Yield the stages before any number of a row is used."""
    rows_travel = layout.n_column_groups > 1
    yield secrets.stage("row", "column")
    yield alignment.stage(params, layout, rows_travel=rows_travel)


def runs(params: LosslessFederated, *, rows_split: bool) -> Iterator[Stage]:
    """Yield the stages of one run: a start, and the updates."""
    if not rows_split:
        if params.start == "careful":
            yield Stage(
                name="start",
                analyst=_role("columns_analyst:ColumnStartAnalyst"),
                party=_role("columns_party:ColumnStartParty"),
                exchanges=(
                    Exchange(
                        messages.MeasureGroups, messages.GroupDistances, shows=True
                    ),
                    Exchange(messages.StartFrom, messages.StartKept),
                ),
                each_run=True,
            )
        yield _updates_of_columns(params)
        return
    if params.start in starts.FROM_PARTIES:
        yield starts.stage(params)
    if params.n_init > 1:
        yield Stage(
            name="race",
            analyst=_role("rows_party:RACE.analyst"),
            party=_role("rows_party:RACE.party"),
            exchanges=(sums.exchange(1),),
            each_run=True,
        )
    yield _updates_of_rows(params)


def _updates_of_rows(params: LosslessFederated) -> Stage:
    least = 0 if params.may_be_left_out else 1
    own = tuple(messages.Totals.model_fields)  # who was left out lacks more of them
    return Stage(
        name=messages.UPDATES,
        analyst=_role("rows_analyst:RowsAnalyst"),
        party=_role("rows_party:RowsParty"),
        exchanges=(
            Exchange(
                messages.Update,
                messages.Sums,
                least,
                params.max_iter,
                own=own,
            ),
            Exchange(messages.Close, messages.ClosingShare, least, own=own),
            Exchange(messages.Gather, messages.GatheredSizes, least, own=own),
            Exchange(
                messages.ReportDigest, messages.DigestReport, least, own=own, shows=True
            ),
        ),
        results=(messages.FinalTotals, messages.Summary),
        results_to="slot" if params.may_be_left_out else "all",
        each_run=True,
    )


def _updates_of_columns(params: LosslessFederated) -> Stage:
    most = params.max_iter + 1
    scatter = Exchange(messages.Scatter, messages.ScatterShare, 0)
    return Stage(
        name=messages.UPDATES,
        analyst=_role("columns_analyst:ColumnsAnalyst"),
        party=_role("columns_party:ColumnsParty"),
        exchanges=(
            Exchange(
                messages.MeasureDistances, messages.Distances, 1, most, shows=True
            ),
            *([] if params.publish == "nothing" else [scatter]),
        ),
        results=(messages.GroupLabels, messages.ColumnsSummary),
        results_to="all",
        each_run=True,
    )
