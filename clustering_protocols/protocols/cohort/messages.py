"""Records of a count; the lists that go round are those of linkage."""

from __future__ import annotations

from clustering_protocols.records.record import Record


class Counted(Record):
    """Result and summary: linked rows of each row group, rounded down to a step.

    rows_in_common: by the first slot of each row group of two and more.
    """

    kind = "counted-linked"

    rows_in_common: dict[str, int]
