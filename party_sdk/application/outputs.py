"""The files that a run writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from party_sdk.results.output_files import record_outputs, refuse_overwriting

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from clustering_protocols.records.arrays import FloatArray
    from party_sdk.party.participant import Party
    from party_sdk.party.party_session import PartySession
    from party_sdk.results.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The files that a run writes.

    details: whether labels get a column of their uncertainty, if the party can know it.
    force: whether files of other programs or sessions are replaced.
    """

    labels: Path | None = None
    details: bool = False
    force: bool = False

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """Return the paths of all files."""
        return (self.labels,)

    def check(self, session: PartySession) -> None:
        """Refuse to replace files that this session has not written."""
        refuse_overwriting(self.paths, session, force=self.force)

    def write(self, member: Party, result: Result, data: DataSource) -> None:
        """Write all files of a result."""
        with record_outputs(self.paths, member.stored):
            if self.labels is not None and not result.is_description:
                uncertainty = self._uncertainty(member, result, data)
                result.save(self.labels, uncertainty)

    def _uncertainty(
        self, member: Party, result: Result, data: DataSource
    ) -> FloatArray | None:
        """Return the uncertainty of each row's label, if details are wanted."""
        if not self.details:
            return None
        all_numbers = np.arange(len(result.labels))
        rows, numbers = member.select_clustered(data, all_numbers)
        uncertainty = result.uncertainty(rows)
        if uncertainty is None or len(uncertainty) == len(all_numbers):
            return uncertainty
        aligned = np.full(len(all_numbers), np.nan)
        aligned[numbers] = uncertainty
        return aligned
