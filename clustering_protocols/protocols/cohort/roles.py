"""Both roles of a count: lists go round a ring of parties as in linkage, but shuffled.

Every party of the ring masks and shuffles each list: first the owner of the list, then
each party that passes it on. The last party hashes it into tokens. So only a coalition of
all parties of the ring can find the position of a row among the tokens, with or without the
analyst. Hiding the exact numbers from the analyst too would need more than masks.

Rounding does not hide one person from an attacker whose list has that person and
``step - 1`` people who are known to be in common: the count shows if that person is too.
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
    find_rings,
    link_all_rings,
)


class Counted(Record):
    """Result and summary: linked rows of each row group, rounded down to a step.

    rows_in_common: number of linked rows, by the first slot of each shared row group.
    """

    kind = "counted-linked"

    rows_in_common: dict[str, int]


@dataclass(frozen=True)
class CountingAnalyst(LinkageAnalyst):
    """Counts the rows that linkage would link, without disclosing them.

    unit: the step to which numbers are rounded down.
    """

    unit: int

    def step(
        self,
        session: SessionContext,
        state: LinkageState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Return the next round, or at the end the rounded numbers."""
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
    """Masks and shuffles lists; reads a number.

    unit: the step to which numbers are rounded down.
    """

    shuffles: bool = True
    unit: int

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return the label -1 for each row, and the numbers for the operator.

        Raises ProtocolFailed if they cannot be counts of the parties' rows.
        """
        session, counts = context.session, Counted.narrow(result).rows_in_common
        groups = {group[0]: group for group in find_rings(session.layout)}
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
