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
    from party_sdk.results.exports import ExportColumn


def export_table(home: Home, folder: PartyFolder, rows: Rows) -> list[ExportColumn]:
    """Return the own table with the cluster of each row, to be written.

    Raises NotReady if there is no result yet.
    Raises GuardRefused if the table is another than the one that took part.
    Raises InvalidParameters if it is a table of counts.
    """
    from party_sdk.reports.run_reports import check_own_table
    from party_sdk.results.exports import export_columns
    from party_sdk.tables import Table

    with home.resume(folder.session, folder.slot, Policy()) as member:
        result = member.result()
        named = home.map_rows(folder, rows)
        data = named.open(member.slot_fields, folder.load_identity().columns)
        if not isinstance(data, Table):
            raise InvalidParameters(
                "A table of counts is not exported: take the labels."
            )
        check_own_table(member, data)
        return export_columns(
            data, result.labels, result.memberships, folder.cluster_names
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
