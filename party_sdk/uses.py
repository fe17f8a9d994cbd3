"""What a session will show of a party's table, as its home keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from clustering_protocols.contract.shown import Kind, Reader, kinds_of
from clustering_protocols.data import DataSource
from clustering_protocols.preparation.jitter import JitteredRows
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.registry import check_terms, shown_in
from clustering_protocols.terms import Terms
from party_sdk.memory import PartyFolder
from party_sdk.shown_files import Use


def use_of(folder: PartyFolder, terms: Terms, columns: Iterable[str]) -> Use:
    """Return what a session shows of a table with these columns.

    Parameters
    ----------
    folder : PartyFolder
        Of the party in this session.
    terms : Terms
        As they were checked.
    """
    outside = kinds_of(shown_in(terms), Reader.OUTSIDE)
    adds_up = terms.layout.adds_up(terms.layout.slot(folder.slot).column)
    added = terms.release is not None and adds_up
    return Use(
        session=folder.attempt,
        analyst=terms.identities.analyst,
        coordinator=terms.identities.coordinator,
        outside=outside,
        way=_way(terms.protocol.name, columns),
        published=added or Kind.MEANS in outside,
        smallest=_smallest(terms),
    )


def moved_rows(folder: PartyFolder, terms: Terms, data: DataSource) -> DataSource:
    """Return what arrived of a table, its numbers moved where the terms say so.

    Equal in every session and attempt of one home.
    """
    schema = terms.dictionary_of(folder.slot)
    if schema is None or not check_terms(terms).jitters:
        return data
    return JitteredRows(
        source=data,
        schema=schema,
        key=folder.shown.key("jitter"),
        words=folder.shown.marks(data).rows,
    )


def _smallest(terms: Terms) -> int:
    """Return how many rows a published mean has at least, of those that differ too."""
    told = check_terms(terms).fewest_published
    return told if terms.release is None else max(told, terms.release.min_cluster_rows)


def _way(protocol: str, columns: Iterable[str]) -> str:
    return sha256(length_prefixed(protocol, *sorted(columns))).hexdigest()
