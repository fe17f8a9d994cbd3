"""Where a session stands, put into the status of an order."""

from __future__ import annotations

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.progress import describe_pace, updates_done
from clustering_protocols.wire.states import SessionState
from party_sdk.home.clock import now
from party_sdk.supervisor.files import OrderFiles
from party_sdk.supervisor.models import Trouble


def trouble_of(error: CoterieError) -> Trouble:
    """Return an error in the words of the closed list."""
    return Trouble(
        headline=error.problem.title, detail=error.detail, remedy=error.remedy
    )


class OrderWatch:
    """Tells by the status of an order."""

    def __init__(self, files: OrderFiles) -> None:
        self._files = files

    def progress(self, status: SessionStatus) -> None:
        """Tell that the session has moved."""
        is_in_stage = status.round > 0 and status.state is not SessionState.CHOOSING
        done, most = updates_done(status)
        moved = status.progress.get("moved") or [None]
        self._files.tell(
            title=status.title,
            protocol=status.protocol,
            stage=status.stage if status.round else status.state.value,
            stage_number=status.stage_index + 1 if is_in_stage else None,
            n_stages=status.n_stages or None,
            round=status.round or None,
            updates=done or None,
            n_rounds=most or None,
            awaited=()
            if status.is_over
            else tuple(status.awaited_slots) or ("the analyst",),
            awaited_since=None if status.is_over else status.waiting_since,
            moved=moved[-1],
            pace=describe_pace(status),
            outage_since=None,
        )

    def outage(self, outage: str) -> None:
        """Tell since when the analyst cannot be reached or is full; empty: it is well."""
        since = self._files.status().outage_since or now()
        self._files.tell(outage_since=since if outage else None)
