"""Both roles of a count, in which lists are passed around as in linkage, but shuffled.

Each list is masked and shuffled by every party of a ring, first by its owner and then
by each party that passes it on. The last party hashes it into tokens. So only a
coalition of all parties of the ring, with or without the analyst, can find the position
of a row among the tokens. The masks do not hide the exact number of matches from the
analyst, which rounds it.

Rounding does not protect a person from an attacker whose list contains that person and
``step - 1`` people who are known to be in common: the count then reveals whether the
person is in common too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    Ask,
    Finish,
    Outcome,
    PartyContext,
    SessionContext,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.linkage import (
    LinkageAnalyst,
    LinkageParty,
    LinkageState,
    link_all_rings,
)
from clustering_protocols.shared_stages.row_selection import shared_row_groups


class Counted(Record):
    """Result and summary: the numbers of linked rows, rounded down to multiples of a step.

    rows_in_common: the number of linked rows of each shared row group, under the name
        of the group's first slot.
    """

    kind = "counted-linked"

    rows_in_common: dict[str, int]


@dataclass(frozen=True)
class CountingAnalyst(LinkageAnalyst):
    """Counts the rows that linkage would link, without disclosing which they are.

    unit: counts are rounded down to a multiple of this.
    """

    unit: int

    def step(
        self,
        session: SessionContext,
        state: LinkageState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Ask for the next round, or finish with the rounded counts."""
        if state.asked != "show-tokens":
            return super().step(session, state, contributions)
        linked = link_all_rings(session, contributions)
        numbers = {group[0]: len(rows[0]) for group, rows in linked.items()}
        counts = Counted(
            rows_in_common={s: n - n % self.unit for s, n in numbers.items()}
        )
        return Finish.with_results(
            dict.fromkeys(session.slots, counts), summary=counts, labelled_at_home=True
        )


@dataclass(frozen=True, kw_only=True)
class CountingParty(LinkageParty):
    """Masks and shuffles the lists that are passed around; receives the rounded counts.

    unit: counts are rounded down to a multiple of this.
    """

    shuffles: bool = True
    unit: int

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return the label -1 for each row, and report the counts to the operator.

        Raises ProtocolFailed if a count is impossible, given the parties' numbers of
        rows.
        """
        session, counts = context.session, Counted.narrow(result).rows_in_common
        groups = {group[0]: group for group in shared_row_groups(session.layout)}
        if set(counts) != set(groups):
            raise ProtocolFailed("The analyst reports counts of other row groups.")
        report = {}
        for first, group in groups.items():
            count, limit = counts[first], min(map(session.n_rows, group))
            if not 0 <= count <= limit or count % self.unit:
                raise ProtocolFailed("The analyst reports an impossible count.")
            number = f"{count} or more" if count else f"fewer than {self.unit}"
            report[f"rows that {', '.join(group)} have in common"] = number
        labels = np.full(session.n_rows(context.slot.name), -1, dtype=np.int64)
        return Outcome(labels=labels, report=report)
