"""What the reports of parties and of coordinators have alike: seats and fidelity."""

from __future__ import annotations

from collections.abc import Iterator

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.suitability import Method, Partitioning
from clustering_protocols.contract import Params
from clustering_protocols.terms.terms import Layout, Terms
from coterie_pages.models import NamedInstitution, SlotEntry
from party_sdk.party.roster import Roster


def seats_of(roster: Roster, layout: Layout, own: str = "") -> Iterator[SlotEntry]:
    """Yield who sits at each slot, as the agreement says; ``own`` is the reader's."""
    for seat in roster.seats:
        slot = layout.slot(seat.slot)
        yield SlotEntry(
            slot=seat.slot,
            title=slot.title,
            row=slot.row,
            column=slot.column,
            who=NamedInstitution(
                name=seat.name, known=seat.known, fingerprint=seat.fingerprint
            ),
            own=seat.slot == own,
            n_rows=seat.n_rows,
            n_columns=seat.n_columns,
        )


def find_agreement(terms: Terms) -> tuple[str, tuple[float, float] | None]:
    """Return the method that terms use, and its agreement on public data.

    None where it was not measured.
    """
    name, partitioning = terms.protocol.name, partitioning_of(terms.layout)
    way = way_of(name, session_terms.check_terms(terms), partitioning)
    return ("", None) if way is None else (way.name, way.agreement.get(partitioning))


def partitioning_of(layout: Layout) -> Partitioning:
    """Return how a layout splits data."""
    if layout.n_column_groups == 1:
        return "horizontal"
    return "vertical" if layout.n_row_groups == 1 else "mixed"


def way_of(name: str, params: Params, partitioning: Partitioning) -> Method | None:
    """Return the way of a protocol whose algorithm the parameters ask for."""
    asked = params.model_dump(mode="json").get("algorithm")
    usual = catalogue.defaults(type(params)).get("algorithm")
    ways = [
        way
        for way in catalogue.protocol(name).methods
        if partitioning in way.partitionings
    ]
    return next(
        (way for way in ways if way.params.get("algorithm", usual) == asked), None
    )
