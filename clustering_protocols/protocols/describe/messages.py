"""Records of a description; its sums are in the records of profiles."""

from __future__ import annotations

from clustering_protocols.records.record import Record


class Begin(Record):
    """Task: confirm that you take part."""

    kind = "begin"


class Present(Record):
    """Contribution: the confirmation that this party takes part."""

    kind = "present"
    reach = "agreement"
    meaning = "That you take part: no number and no row."


class Described(Record):
    """Result and summary, empty: the description itself is the profile of all rows."""

    kind = "described"
