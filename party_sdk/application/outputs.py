"""The output files of a run."""

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
    """The output files that a run writes.

    details: whether to add a column with the uncertainty of each label, if it is known.
    force: whether to replace files that this session has not written.
    """

    labels: Path | None = None
    details: bool = False
    force: bool = False

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """Return the paths of all output files; None for a file that is not written."""
        return (self.labels,)

    def check_overwriting(self, session: PartySession) -> None:
        """Raise if an output file exists that this session has not written."""
        refuse_overwriting(self.paths, session, force=self.force)

    def write_files(self, member: Party, result: Result, data: DataSource) -> None:
        """Write all output files of a result; a description has none."""
        if result.is_description:
            return
        with record_outputs(self.paths, member.stored):
            if self.labels is not None:
                uncertainty = self._label_uncertainty(member, result, data)
                result.save(self.labels, uncertainty)

    def _label_uncertainty(
        self, member: Party, result: Result, data: DataSource
    ) -> FloatArray | None:
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
