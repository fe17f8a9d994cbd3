"""Messages of a description, whose sums are sent in the messages of profiles."""

from __future__ import annotations

from clustering_protocols.records.record import Record


class Begin(Record):
    """Task: confirm that you are taking part."""

    kind = "begin"


class Present(Record):
    """Contribution: the confirmation that this party is taking part."""

    kind = "present"
    reach = "agreement"
    meaning = "That you take part: no number and no row."


class Described(Record):
    """Result and summary: empty, because the description is the profile of all rows."""

    kind = "described"
