"""What a session will show of a party's table, as its home keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from clustering_protocols.contract.disclosures import REFUSED, Kind, Reader, kinds_of
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.session_terms import check_terms, shown_in
from clustering_protocols.terms.terms import Terms
from party_sdk.disclosures.history_files import Use
from party_sdk.party.folder import PartyFolder

_IN_PAIRS: Final = frozenset[Kind]().union(*REFUSED)
"""Kinds that say more together with another one."""


def use_of(folder: PartyFolder, terms: Terms, columns: Iterable[str]) -> Use:
    """Return what a session shows of a table with these columns.

    folder: of the party in this session.
    terms: as they were checked.
    columns: those of the table; what is only described is in no geometry.
    """
    shown = shown_in(terms)
    outside = kinds_of(shown, Reader.OUTSIDE)
    adds_up = terms.layout.adds_up(terms.layout.slot(folder.slot).column)
    described = terms.described_names(folder.slot)
    added = terms.release is not None and adds_up
    return Use(
        session=folder.attempt,
        analyst=terms.identities.analyst,
        coordinator=terms.identities.coordinator,
        outside=outside,
        parties=_others(terms, folder.slot),
        everybody=kinds_of(shown, Reader.ALL) & _IN_PAIRS,
        way=_way(terms.protocol.name, set(columns).difference(described)),
        published=added or Kind.MEANS in outside,
        smallest=_smallest(terms),
    )


def _others(terms: Terms, own: str) -> frozenset[str]:
    """Return the keys of the other parties; an empty text where a slot is open."""
    expected = terms.identities.slots
    keys = {expected.get(slot, "") for slot in terms.layout.names if slot != own}
    return frozenset(keys - {expected.get(own, None)})


def _smallest(terms: Terms) -> int:
    """Return how many rows a published mean has at least, of those that differ too."""
    told = check_terms(terms).fewest_published
    return told if terms.release is None else max(told, terms.release.min_cluster_rows)


def _way(protocol: str, columns: Iterable[str]) -> str:
    return sha256(length_prefixed(protocol, *sorted(columns))).hexdigest()
