"""Of split rows: people whom two parties have, told in steps, or left out of the later."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from clustering_protocols.contract import SessionContext
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.overlap import least_share, say_share

from .links import Tokens, link
from .rings import ring_of


class RepeatedPeople(NamedTuple):
    """What is told of the people of a ring.

    rows: the places of the rows of each slot that take part.
    shares: of each slot, for each other the least share of the smaller table, in percent,
        whose people both have. Of few people none is told.
    """

    rows: dict[str, IntArray]
    shares: dict[str, dict[str, int]]


def find_repeated(
    session: SessionContext, lists: Mapping[str, Tokens], *, leaves_out: bool
) -> RepeatedPeople:
    """Return which rows take part, given tokens (k, n) of each slot in their order.

    leaves_out: whether rows of people are left out whom an earlier slot has.
    """
    kept = {slot: np.ones(each.shape[1], dtype=bool) for slot, each in lists.items()}
    shares: dict[str, dict[str, int]] = {slot: {} for slot in lists}
    for one, other in combinations(lists, 2):
        found = link(lists[one], lists[other])
        twice = found[found >= 0]
        if leaves_out:
            kept[other][twice] = False
        if len(twice) >= session.terms.guards.minimum_rows:
            smaller = min(lists[one].shape[1], lists[other].shape[1])
            shares[one][other] = shares[other][one] = least_share(len(twice), smaller)
    rows = {slot: np.flatnonzero(each) for slot, each in kept.items()}
    return RepeatedPeople(rows, shares)


def describe_repeated(
    session: SessionContext, slot: str, shares: Mapping[str, int]
) -> dict[str, object]:
    """Return which share of its people a slot has in common with others, in words."""
    if not session.params.finds_repeated_people:
        return {}
    few = f"fewer than {session.terms.guards.minimum_rows}"
    others = [other for other in ring_of(session.layout, slot) if other != slot]
    told = [f"{o}: {say_share(shares[o]) if o in shares else few}" for o in others]
    return {"people whom others have too": "; ".join(told)}
