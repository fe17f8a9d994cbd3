"""In which sums the rows of a home stood, and which rows follow from sums of all sessions.

Of tables of more than 32,768 rows only the number of sums is kept: each then counts as a
row that follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clustering_protocols.contract import DegreeSums, RowHistory
from clustering_protocols.contract.assignment import Assignment
from clustering_protocols.contract.party import Memory
from clustering_protocols.records.arrays import IntArray, WordArray
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.terms.terms import Terms
from party_sdk.disclosures.known_rows import places_of

Summed = tuple[WordArray, RowHistory]
"""Marks of rows, and in which sums these stood."""


def degrees_in(memory: Memory, terms: Terms) -> float:
    """Return the equations that sums of degrees have told, of all runs."""
    found = (each.get(DegreeSums) for each in _runs(memory, terms))
    return sum(each.equations for each in found if each is not None)


def history_of(memory: Memory, terms: Terms, slot: str, n_rows: int) -> RowHistory:
    """Return in which sums the rows that take part stand, by a party's memory.

    A protocol that adds up by clusters keeps a history of every run. Of others the sums
    of pooled moments and of fillings are of all rows, and those of a profile of the
    final labels.
    """
    kept = (each.get(RowHistory) for each in _runs(memory, terms))
    found = [each for each in kept if each is not None]
    if found:
        return max(found, key=lambda each: each.n_sums)
    history = RowHistory.of_none(n_rows)
    for labels in _partitions(memory, terms, slot, n_rows):
        history = history.after(labels)
    return history


def _runs(memory: Memory, terms: Terms) -> list[Memory]:
    n_runs = 1 if terms.evaluation is None else len(terms.evaluation.n_clusters)
    return [memory.scope_to_run(run) for run in range(n_runs)]


def _partitions(
    memory: Memory, terms: Terms, slot: str, n_rows: int
) -> Iterator[IntArray]:
    """Yield the clusters of rows, for each time that they are added up."""
    if memory.get(RowsSummed) is not None:
        yield np.zeros(n_rows, dtype=np.int64)
    labelled = memory.get(Assignment)
    adds_up = terms.layout.adds_up(terms.layout.slot(slot).column)
    if labelled is not None and terms.release is not None and adds_up:
        yield labelled.labels


def total_of(n_rows: int) -> RowHistory:
    """Return the history of rows of which the sum of all was told."""
    return RowHistory.of_none(n_rows).after(np.zeros(n_rows, dtype=np.int64))


def merge(
    marks: WordArray, history: RowHistory, others: Sequence[Summed]
) -> tuple[WordArray, RowHistory]:
    """Return rows, and their history, with the sums of all others that hang together.

    The first rows are those of this session; then come rows that only others held.
    """
    left = list(others)
    while near := next((each for each in left if np.isin(each[0], marks).any()), None):
        left = [other for other in left if other is not near]
        theirs, sums = near
        new = theirs[~np.isin(theirs, marks)]
        added = np.full(len(new), -1, dtype=np.int64)
        history = history.reindex(np.concatenate([np.arange(len(marks)), added]))
        marks = np.concatenate([marks, new])
        history = history.merge(sums.reindex(places_of(marks, theirs)))
    return marks, history
