"""What a party makes of a result: what the last stage of the chosen run does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clustering_protocols.common.errors import Malformed, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyContext, PartyRole, Stage
from clustering_protocols.engine.cluster_numbers import number_outcome
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records import codec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles import Labelled
from clustering_protocols.shared_stages.profiles.messages import TakeLabels


def outcome_of(
    lasts: Sequence[Stage],
    context: PartyContext,
    result: Record,
    data: DataSource | None,
    chosen: int,
) -> Outcome:
    """Return what the protocol makes of a result.

    ``lasts``: the protocol's last stage, or that of each run.

    Raises ProtocolFailed if a label names no cluster.
    """
    last = lasts[min(chosen, len(lasts) - 1)]
    role: PartyRole[Any, Any, Any, Any] = last.party()
    context = replace(context.of_run(last.run), stage=last.name)
    found = role.conclude(context, result, data)
    sizes = found.cluster_sizes
    if sizes is not None and (found.labels >= len(sizes)).any():
        raise ProtocolFailed("A label names no cluster.")
    return number_outcome(context.session, found)


def labelled_by(lasts: Sequence[Stage]) -> Labelled:
    """Return how a party reads the labels that come before the end."""

    def read_outcome(
        context: PartyContext, task: TakeLabels, data: DataSource
    ) -> Outcome:
        check_choice(context, task.figures, task.chosen)
        header, arrays = codec.decode(task.result.data)
        for kind in lasts[0].results:
            if kind.kind == header.get("kind"):
                result = kind.parse(header, arrays)
                return outcome_of(lasts, context, result, data, task.chosen)
        raise Malformed("What came with labels is no result of this protocol.")

    return read_outcome


def check_choice(
    context: PartyContext, figures: Sequence[Figures], chosen: int
) -> None:
    """Refuse a choice that is not that of the terms, and figures that are not ours.

    Raises ProtocolFailed.
    """
    session = context.session
    if figures and len(figures) != len(session.runs):
        raise ProtocolFailed("The analyst reports the figures of other runs.")
    if chosen >= len(session.runs):
        raise ProtocolFailed("The analyst chose a run that there is not.")
    for run, told in enumerate(figures):
        own = context.memory.scope_to_run(run).get(Figures)
        if own is not None and not own.agrees(told):
            raise ProtocolFailed(
                "The analyst reports other figures than were added up."
            )
    evaluation = session.terms.evaluation
    if evaluation is None or evaluation.choose == "later":
        return
    if chosen != evaluation.best(figures):
        raise ProtocolFailed("The analyst chose another run than the terms say.")
