"""What one principal may take: open sessions, and bytes that parties sent to them.

A quota is the coordinator's own limit, not the analyst's: anyone who meets it is refused
with 403. Repeating does not help until a session ends; and 507, as all of 5xx, would
tell the administrator of a fault.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Contribution, Principal, Session
from clustering_protocols.common.errors import QuotaReached
from clustering_protocols.wire.states import OVER

_IS_OPEN: Final = Session.state.not_in(sorted(state.value for state in OVER))


class Quotas:
    """Quotas in one transaction; None: no quota.

    A principal's row is locked until the transaction ends where one is set: of two that
    come at once, the second one sees the first.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def check_sessions(self, principal_id: str | None, quota: int | None) -> None:
        """Raise :class:`QuotaReached` if a principal may open no further session."""
        if quota is None:
            return
        self._lock(principal_id)
        used = self._sum(
            sa.select(sa.func.count(Session.id)).where(
                Session.owner_id == principal_id, _IS_OPEN
            )
        )
        if used >= quota:
            raise QuotaReached(
                f"This key has {used} open sessions; its quota is {quota}."
            )

    def check_bytes(
        self,
        session: Session,
        size: int,
        quota: int | None,
        *,
        more: int = 0,
        lock: bool = False,
    ) -> None:
        """Raise :class:`QuotaReached` if bytes do not fit into the quota of an owner.

        more: bytes that are about to be stored, and are in no row yet.
        """
        if quota is None:
            return
        if lock:
            self._lock(session.owner_id)
        used = more + self._sum_stored(session.owner_id)
        if used + size > quota:
            raise QuotaReached(
                f"The open sessions of this coordinator hold {used} bytes; {size} more "
                f"do not fit into the quota of {quota}."
            )

    def _sum_stored(self, owner_id: str) -> int:
        size = sa.func.coalesce(sa.func.sum(Contribution.size), 0)
        joined = sa.select(size).join(Session, Session.id == Contribution.session_id)
        return self._sum(joined.where(Session.owner_id == owner_id, _IS_OPEN))

    def _sum(self, query: sa.Select[int]) -> int:
        return int(self._transaction.scalar(query) or 0)

    def _lock(self, principal_id: str | None) -> None:
        self._transaction.execute(
            sa.select(Principal.id)
            .where(Principal.id == principal_id)
            .with_for_update(key_share=True)
        )
