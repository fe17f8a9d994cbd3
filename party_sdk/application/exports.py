"""What a home writes of a result for other programs, and what it calls the clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from party_sdk.application.home import Home
from party_sdk.application.outputs import Rows
from party_sdk.home.policy import Policy
from party_sdk.party.folder import PartyFolder

if TYPE_CHECKING:
    from coterie_pages.models.own_runs import OwnRun, RunOverlap
    from party_sdk.results.exports.export_files import Export


def export_result(home: Home, folder: PartyFolder, rows: Rows | None) -> Export:
    """Return the own table with clusters, and the profile, to be written.

    rows: the party's table; without it the profile alone is exported.

    Raises NotReady if there is no result yet.
    Raises GuardRefused if the table is another than the one that took part.
    Raises InvalidParameters if it is a table of counts.
    """
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import check_own_table, pair_profiles
    from party_sdk.results.exports.export_files import Export
    from party_sdk.results.exports.labelled_tables import columns_of
    from party_sdk.tables import Table

    names = folder.cluster_names
    with home.resume(folder.session, folder.slot, Policy()) as member:
        result = member.result()
        profiles, columns = result.profiles, []
        if rows is not None:
            named = home.map_rows(folder, rows)
            data = named.open(member.slot_fields, folder.load_identity().columns)
            if not isinstance(data, Table):
                raise InvalidParameters(
                    "A table of counts is not exported: take the labels."
                )
            check_own_table(member, data)
            profiles = pair_profiles(member, result, data)
            columns = columns_of(data, result.labels, result.memberships, names)
        return Export(
            session=folder.session,
            stem=f"{folder.session}-{folder.slot}",
            columns=columns,
            profiles=profiles,
            outcomes=outcomes_in(member.terms, profiles),
            names=names,
        )


def name_clusters(
    home: Home, folder: PartyFolder, names: Mapping[int, str]
) -> tuple[str, ...]:
    """Keep names of clusters at home, and return all that are kept.

    Raises NotReady if there is no result yet.
    Raises InvalidParameters if a name or a number does not fit.
    """
    with home.resume(folder.session, folder.slot, Policy()) as member:
        n_clusters = len(member.result().own_sizes)
    with folder.lock():
        return folder.name_clusters(names, n_clusters)


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
    home: Home, folder: PartyFolder, rows: Rows
) -> tuple[list[OwnRun], list[RunOverlap]]:
    """Return what each run makes of the own rows, before one is chosen.

    Raises NotReady if this party knows no labels yet.
    Raises GuardRefused if the table is another than the one that takes part.
    """
    from party_sdk.reports.own_runs import own_runs

    with home.resume(folder.session, folder.slot, Policy()) as member:
        named = home.map_rows(folder, rows)
        data = named.open(member.slot_fields, folder.load_identity().columns)
        return own_runs(member, data)
