"""New rows beside those of a session: do they look like other units? Nothing is sent."""

from __future__ import annotations

from clustering_protocols.contract.party import Memory
from clustering_protocols.data import DataSource
from clustering_protocols.preparation.statistics.by_leader import (
    Moments,
    OwnMoments,
    PooledMoments,
    measure,
)
from clustering_protocols.preparation.statistics.other_units import (
    Others,
    columns_of,
    question,
)
from clustering_protocols.terms import Terms


def own_moments(rows: DataSource) -> OwnMoments:
    """Return what a home keeps of its own rows, as they were clustered."""
    found = measure(rows, moments=True, ranges=False)
    return OwnMoments.model_validate(dict(found))


def known_moments(memory: Memory, own: OwnMoments | None) -> Moments | None:
    """Return the moments of the own rows, or the pooled ones where those were not kept.

    A unit that is wrong at another party is in the pooled ones.
    """
    pooled = memory.get(PooledMoments)
    return own or (pooled if pooled is not None and pooled.mean.size else None)


def doubt(terms: Terms, slot: str, known: Moments, rows: DataSource) -> str:
    """Return what to ask before new rows get labels; nothing where they look alike.

    Parameters
    ----------
    known : Moments
        Of the columns of the session.
    rows : DataSource
        New rows, as these columns.
    """
    columns = columns_of(rows.columns, terms.plan(slot), terms.dictionary_of(slot))
    session = Others(known.mean, known.spread)
    found = measure(rows, moments=True, ranges=False)
    return question(columns, found, session, "the session's rows")
