"""New rows at a party: what is kept of the trained ones, and the comparison with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering_protocols.common.errors import NotReady
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.terms.terms import Terms
from party_sdk.admission.table_admission import select_clustered
from party_sdk.party.folder import PartyFolder
from party_sdk.results.trained_rows import measure_prepared, measure_variables

# What a comparison needs is imported when there are new rows
if TYPE_CHECKING:
    from party_sdk.results.comparison import Comparison


@dataclass(frozen=True, slots=True)
class TrainedSummary:
    """What a party keeps of its rows once a session is over, to compare new ones with."""

    folder: PartyFolder
    terms: Terms
    slot: str

    def keep(self, data: DataSource) -> None:
        """Keep a summary of the rows that arrived at the session."""
        rows, _ = self._prepare(data)
        is_prepared = self.terms.plan(self.slot) is not None
        variables = measure_variables(data) if is_prepared else None
        self.folder.save_moments(measure_prepared(rows), variables)

    def compare(self, data: DataSource, sizes: IntArray) -> Comparison:
        """Return new rows beside the trained ones.

        sizes: int64 (k,); own trained rows in each cluster.

        Raises NotReady if nothing of the trained rows is stored here.
        Raises InvalidData if no row has the values that it needs.
        """
        from party_sdk.results.comparison import Comparison

        rows, numbers = self._prepare(data)
        trained = self.folder.load_moments()
        if trained is None:
            raise NotReady("This home keeps no summary of the trained rows.")
        return Comparison(
            terms=self.terms,
            slot=self.slot,
            trained=trained,
            variables=self.folder.load_variables(),
            sizes=sizes,
            table=data,
            rows=rows,
            numbers=numbers,
        )

    def _prepare(self, data: DataSource) -> tuple[DataSource, IntArray]:
        """Return rows as the columns that were clustered, and their numbers."""
        memory = self.folder.load_standing().answered.after
        numbers = np.arange(data.n_rows, dtype=np.int64)
        return select_clustered(self.terms, self.slot, memory, data, numbers)
