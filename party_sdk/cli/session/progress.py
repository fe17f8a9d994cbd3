"""Where a session stands, for a coordinator who looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clustering_protocols.wire.states import SessionState, SlotState
from party_sdk.cli.terminal.output import progress_line, report_lines, say
from party_sdk.cli.terminal.run_table import table_lines

if TYPE_CHECKING:
    from clustering_protocols.records.record import Record
    from clustering_protocols.wire.answers import SessionStatus, SlotStatus
    from party_sdk.coordinator.session import CoordinatedSession


def show_summary(summary: Record) -> None:
    """Print what the coordinator may read of the result: numbers and short lists."""
    for line in report_lines(summary.values, between=" "):
        say(line)
    for name, array in summary.arrays.items():
        if array.ndim == 1:
            say(f"{name} {', '.join(map(str, array.tolist()))}")


def result_document(
    opened: CoordinatedSession, status: SessionStatus
) -> dict[str, Any]:
    """Return the whole result that the coordinator may read, once it is there.

    Labels are not in it: parties alone have them. Nothing on another machine than that
    on which the session was opened: only there can a result be checked.
    """
    if status.state is not SessionState.COMPLETED or not opened.is_ours:
        return {}
    summary = opened.summary()
    arrays = {name: array.tolist() for name, array in summary.arrays.items()}
    return {"result": {**summary.values, **arrays}}


def _absence(slot: SlotStatus) -> str:
    """Return why a party has not joined, as far as it has said."""
    if slot.state is SlotState.INVITED:
        return "has not joined"
    return f"has {slot.state}" + (f": {slot.reason}" if slot.reason else "")


def show_status(status: SessionStatus) -> None:
    """Print where a session stands, for whom it waits, and what its runs are like."""
    say(f"{status.title or status.id}: {status.protocol}")
    say(progress_line(status))
    for slot in status.slots:
        joined = f"{slot.n_rows} rows" if slot.joined_at else _absence(slot)
        if slot.stopped is not None:
            joined += f", stopped for good: {slot.stopped}"
        waiting = f"; waiting since {status.waiting_since:%H:%M:%S} UTC" * slot.awaited
        say(f"  {slot.name}: {joined}{waiting}")
    chosen = next((n for n, run in enumerate(status.runs) if run.chosen), None)
    figures = [run.figures for run in status.runs]
    numbers = [run.n_clusters for run in status.runs]
    sizes = [run.sizes for run in status.runs]
    for line in table_lines(numbers, figures, chosen, sizes):
        say(line)
    if status.state is SessionState.CHOOSING and (said := suggestion_line(status)):
        say(said)


def suggestion_line(status: SessionStatus) -> str:
    """Return which run is suggested and why; empty where nothing compares runs."""
    from coterie_pages.result_texts.run_suggestion import suggest_run

    found = suggest_run(status.runs)
    if found is None:
        return ""
    doubts = "".join(f" {doubt}" for doubt in found.doubts)
    return f"suggested: {found.n_clusters} clusters, {found.reason}.{doubts}"
