"""Queries on results."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session as Unit

from analyst_service.models import Result


class ResultRepository:
    """Results in one transaction."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def digest(self, session_id: str, slot: str) -> str | None:
        """Return the blob of a slot's result."""
        found = self._unit.get(Result, (session_id, slot))
        return found.digest if found else None

    def add(self, session_id: str, digests: Mapping[str, str]) -> None:
        """Store the results of all slots."""
        self._unit.add_all(
            Result(session_id=session_id, slot=slot, digest=digest)
            for slot, digest in digests.items()
        )
        self._unit.flush()
