"""The files that a run writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from party_sdk.results.output_files import keep_others, remember_outputs

# Libraries of tables and pictures are imported when rows are read and drawn
if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from clustering_protocols.records.arrays import FloatArray
    from party_sdk.party.participant import Party
    from party_sdk.party.party_session import PartySession
    from party_sdk.results.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where a run writes.

    details: whether labels have a column that says how unsure they are, where the party
        can know.
    force: whether files of others are replaced.
    """

    labels: Path | None = None
    picture: Path | None = None
    details: bool = False
    force: bool = False

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """Return all files."""
        return self.labels, self.picture

    def check(self, session: PartySession) -> None:
        """Refuse files that are not this session's."""
        keep_others(self.paths, session, force=self.force)

    def write(self, member: Party, result: Result, data: DataSource) -> None:
        """Write all files of a result."""
        with remember_outputs(self.paths, member.stored):
            if self.labels is not None and not result.is_description:
                unsure = self._uncertainty(member, result, data)
                result.save(self.labels, unsure)
            if self.picture is not None:
                from party_sdk.results.plots import draw

                shown, found = member.select_clustered(data, result.labels)
                blocks = result.item_memberships is not None
                units = None if blocks else member.units(shown)
                draw(shown, replace(result, labels=found), units=units).save(
                    self.picture
                )

    def _uncertainty(
        self, member: Party, result: Result, data: DataSource
    ) -> FloatArray | None:
        """Return how unsure the label of each row of the table is, where that is asked."""
        if not self.details:
            return None
        numbers = np.arange(len(result.labels))
        rows, kept = member.select_clustered(data, numbers)
        found = result.uncertainty(rows)
        if found is None or len(found) == len(numbers):
            return found
        whole = np.full(len(numbers), np.nan)
        whole[kept] = found
        return whole
