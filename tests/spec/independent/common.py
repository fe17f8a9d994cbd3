"""Section 11, intersection and linkage: the rows that are common, and their digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from .derivations import Refusal
from .kinds import Record
from .order import Memory, Reply, Role, View

_SELECTION: Final = "selection"


class Comparison(Role):
    """Section 11, alignment: digests, compared with those of leaders."""

    def compare(self, view: View, names: Sequence[str] | None, /) -> Reply:
        """Section 11, alignment: digests; of ids where no names are given."""
        raise NotImplementedError


def select_common(
    view: View,
    comparison: Comparison,
    chosen: Sequence[int],
    counts: Mapping[str, int],
    names: Sequence[str] | None = None,
) -> Reply:
    """Section 11, intersection, select: keep the common rows, compare their digest.

    chosen: own rows, in the order of all of the row group. counts: ``n_rows``.
    """
    if _SELECTION in view.memory:
        raise Refusal("protocol-failed")
    _check_counts(view, counts, len(chosen))
    selection = {"rows": sorted(chosen), "counts": counts}
    places = [selection["rows"].index(row) for row in chosen]
    reply = comparison.compare(narrow(view, chosen, counts), names)
    travels = [places[place] for place in reply.remember["order"]]
    reply.remember |= {_SELECTION: selection, "order": travels}
    return reply


def _check_counts(view: View, counts: Mapping[str, int], n: int) -> None:
    """Section 11, intersection: numbers of rows that can be."""
    session = view.session
    said = session.terms["protocol"]["params"]["alignment"]
    least = session.terms.get("guards", {}).get("minimum_rows", 10)
    if n < max(said.get("minimum_overlap", 1), least):
        raise Refusal("guard-refused")
    if sorted(counts) != sorted(session.slots) or not all(
        1 <= counts[slot] <= session.roster[slot]["n_rows"] for slot in counts
    ):
        raise Refusal("protocol-failed")
    if any(counts[slot] != n for slot in view.group("row")):
        raise Refusal("protocol-failed")


def read_digests(
    view: View, comparison: Comparison, came: list[tuple[str, Record]]
) -> Memory | None:
    """Section 11, intersection: digests of leaders; None before rows are selected."""
    if _SELECTION not in view.memory:
        return None
    if {record.kind for _, record in came} != {"digests"}:
        raise Refusal("envelope-refused")
    return comparison.receive(view, came)


def narrow(view: View, rows: Sequence[int], counts: Mapping[str, int]) -> View:
    """Section 11, intersection: what a party knows of some rows, in an order."""
    return replace(view, session=view.session.select(rows, counts))
