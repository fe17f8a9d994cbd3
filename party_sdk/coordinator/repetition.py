"""The same session again: last quarter's terms, with all parties or without some."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from clustering_protocols.catalogue import check_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.terms.terms import Layout, Slot, Terms


def like(terms: Terms, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what ``Coordinator.create_session`` takes, as terms say it.

    All but the id, the seed and the invitations, which are new.

    without: slots to leave out. Groups that nobody is left in go too, and with a column
        group its dictionary.

    Raises InvalidParameters if there is no such slot, or nobody is left.
    """
    for slot in without:
        if slot not in terms.layout.names:
            hint = did_you_mean(slot, terms.layout.names)
            raise InvalidParameters(f"That session has no slot {slot!r}.{hint}")
    kept = [slot for slot in terms.layout.slots if slot.name not in without]
    if not kept:
        raise InvalidParameters("Nobody is left.")
    rows = sorted({slot.row for slot in kept})
    columns = sorted({slot.column for slot in kept})
    names = {slot.name for slot in kept}
    keys = terms.identities.slots

    def of_columns(parts: Any) -> Any:
        return None if parts is None else [parts[column] for column in columns]

    said = {
        name: value
        for name, value in terms.sections.items()
        if name not in {"identities", "seed"}
    }
    return {
        **said,
        "params": check_terms(terms),
        "layout": Layout(
            slots=tuple(
                Slot(
                    name=slot.name,
                    title=slot.title,
                    row=rows.index(slot.row),
                    column=columns.index(slot.column),
                )
                for slot in kept
            )
        ),
        "expected": {slot: key for slot, key in keys.items() if slot in names},
        "dictionary": of_columns(terms.dictionary),
        "preparation": of_columns(terms.preparation),
    }
