"""What a home writes of a result for other programs, and what it calls the clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter, ValidationError

from clustering_protocols.common.errors import InvalidData, InvalidParameters, NotReady
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.session_terms import check_terms, runs_of
from coterie_pages.models import OwnRun, RunOverlap
from party_sdk.admission.table_files import TableSpec
from party_sdk.application.home import Home
from party_sdk.home.policy import Policy
from party_sdk.party.party_session import PartySession
from party_sdk.reports.run_reports import check_own_table

if TYPE_CHECKING:
    from clustering_protocols.contract import Outcome
    from clustering_protocols.numerics.data_source import DataSource
    from party_sdk.party.participant import Party
    from party_sdk.results.exports import ExportColumn


def export_table(
    home: Home, stored: PartySession, rows: TableSpec
) -> list[ExportColumn]:
    """Return the own table with the cluster of each row, to be written.

    Raises NotReady if there is no result yet.
    Raises GuardRefused if the table is another than the one that took part.
    Raises InvalidParameters if it is a table of counts.
    """
    from party_sdk.results.exports import export_columns
    from party_sdk.tables import Table

    with home.resume(stored.session, stored.slot, Policy()) as member:
        result = member.result()
        named = home.map_rows(stored, rows)
        data = named.open(member.slot_fields, stored.load_identity().columns)
        if not isinstance(data, Table):
            raise InvalidParameters(
                "A table of counts is not exported: take the labels."
            )
        check_own_table(member, data)
        return export_columns(
            data, result.labels, result.memberships, stored.cluster_names
        )


def name_clusters(
    home: Home, stored: PartySession, names: Mapping[int, str]
) -> tuple[str, ...]:
    """Keep names of clusters at home, and return all that are kept.

    Raises NotReady if there is no result yet.
    Raises InvalidParameters if a name or a number does not fit.
    """
    with home.resume(stored.session, stored.slot, Policy()) as member:
        n_clusters = len(member.result().own_sizes)
    with stored.lock():
        return stored.name_clusters(names, n_clusters)


def read_names(path: Path) -> dict[int, str]:
    """Return the names in a JSON file, such as ``{"0": "Young", "2": "Old"}``.

    Raises InvalidData if it is no such file.
    """
    try:
        return TypeAdapter(dict[int, str]).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise InvalidData(
            f"{path.name!r} holds no names of clusters.",
            remedy='Write them as JSON, such as {"0": "Young", "2": "Old"}.',
        ) from None


def look_at_runs(
    home: Home, stored: PartySession, rows: TableSpec
) -> tuple[list[OwnRun], list[RunOverlap]]:
    """Return what each run makes of the own rows, before one is chosen.

    Raises NotReady if this party knows no labels yet.
    Raises GuardRefused if the table is another than the one that takes part.
    """
    with home.resume(stored.session, stored.slot, Policy()) as member:
        named = home.map_rows(stored, rows)
        data = named.open(member.slot_fields, stored.load_identity().columns)
        return own_runs(member, data)


_SMALLEST = 1  # the rows are the reader's own


def own_runs(member: Party, data: DataSource) -> tuple[list[OwnRun], list[RunOverlap]]:
    """Return each run that is done, and how neighbours share the own rows.

    Nothing is sent, and no other party's rows are in it.

    Raises GuardRefused if the table is another than the one that takes part.
    Raises NotReady if this party knows no labels yet: of methods whose analyst labels
        rows they come with the result alone.
    """
    check_own_table(member, data)
    asked = runs_of(check_terms(member.terms), member.terms.evaluation)
    numbers = [getattr(run, "n_clusters", None) or 0 for run in asked]
    known = [
        (k, outcome)
        for k, outcome in zip(numbers, member.foresee(), strict=False)
        if outcome is not None
    ]
    if not known:
        raise NotReady(
            "This party knows no labels before the result: the runs are not done, or "
            "the analyst of this method labels the rows."
        )
    runs = [_own_run(member, k, outcome, data) for k, outcome in known]
    return runs, list(_overlaps(known))


def _own_run(member: Party, k: int, outcome: Outcome, data: DataSource) -> OwnRun:
    from clustering_protocols.shared_stages.profiles.profile import own_profile

    terms, slot = member.terms, member.invitation.slot
    schema, column = terms.dictionary_of(slot), terms.layout.slot(slot).column
    sizes = outcome.cluster_sizes
    profile = None
    if schema is not None:
        profile = own_profile(schema, data, outcome.labels, column, _SMALLEST)
    found: IntArray = np.bincount(
        outcome.labels[outcome.labels >= 0], minlength=k
    ).astype(np.int64)
    return OwnRun(
        n_clusters=k,
        own_sizes=tuple(found.tolist()),
        sizes=() if sizes is None else tuple(sizes.tolist()),
        profile=profile,
    )


def _overlaps(known: Sequence[tuple[int, Outcome]]) -> Iterator[RunOverlap]:
    for (first, before), (second, after) in pairwise(known):
        counts = np.zeros((first, second), dtype=np.int64)
        both = (before.labels >= 0) & (after.labels >= 0)
        np.add.at(counts, (before.labels[both], after.labels[both]), 1)
        yield RunOverlap(
            first=first,
            second=second,
            counts=tuple(map(tuple, counts.tolist())),
        )
