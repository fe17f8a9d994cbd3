"""What an answer costs the people of a table, by differential privacy.

A role that makes a release has its party remember :class:`PrivacySpending`; anyone who
runs the party adds it to what other sessions on the same table have cost.
"""

from __future__ import annotations

from pydantic import Field

from clustering_protocols.records.record import Record


class PrivacySpending(Record):
    """Memory: (ε, δ) of a person for the whole session, all parties together.

    epsilon: None for a release without noise, which no ε bounds.
    """

    kind = "spent"

    epsilon: float | None = Field(ge=0)
    delta: float = Field(ge=0)
