"""Export a result, name its clusters, and preview the runs of a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidData, InvalidParameters, NotReady
from clustering_protocols.contract import Outcome
from clustering_protocols.contract.party import PartyRole
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.session_terms import check_terms, params_per_run
from clustering_protocols.shared_stages.profiles.profile import own_profile
from clustering_protocols.terms.terms import Terms
from coterie_pages.models import OwnRun
from party_sdk.admission.table_files import TableSpec
from party_sdk.application.home import Home
from party_sdk.party.participant import Party
from party_sdk.party.party_session import PartySession
from party_sdk.results.exports import ExportColumn, export_columns
from party_sdk.tables import Table


def export_table(
    home: Home, stored: PartySession, rows: TableSpec
) -> list[ExportColumn]:
    """Return the columns of the party's table, with the cluster of each row added.

    Raises NotReady if there is no result yet, GuardRefused if the session used another
    table, and InvalidParameters if the table contains counts.
    """
    with home.resume(stored.session, stored.slot) as member:
        result = member.result()
        data = home.open_own_table(member, rows)
        if not isinstance(data, Table):
            raise InvalidParameters(
                "A table of counts cannot be exported: export the labels."
            )
        member.check_table(data)
        return export_columns(
            data, result.labels, result.memberships, stored.cluster_names
        )


def name_clusters(
    home: Home, stored: PartySession, names: Mapping[int, str]
) -> tuple[str, ...]:
    """Store names for clusters, and return the names of all clusters.

    Raises NotReady if there is no result yet. Raises InvalidParameters if a name or a
    cluster number is invalid.
    """
    with home.resume(stored.session, stored.slot) as member:
        n_clusters = len(member.result().own_sizes)
    with stored.lock():
        return stored.name_clusters(names, n_clusters)


def read_names(path: Path) -> dict[int, str]:
    """Read cluster names from a JSON file, such as ``{"0": "Young", "2": "Old"}``.

    Raises InvalidData if the file cannot be read or does not contain such a mapping.
    """
    try:
        return TypeAdapter(dict[int, str]).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise InvalidData(
            f"{path.name!r} contains no cluster names.",
            remedy='Write them as JSON, such as {"0": "Young", "2": "Old"}.',
        ) from None


def can_preview_runs(terms: Terms) -> bool:
    """Return whether each party can look at its rows in each run before the result.

    It cannot if there is a single run, or if the analyst labels the rows.
    """
    if terms.evaluation is None:
        return False
    params, *_ = params_per_run(check_terms(terms), terms.evaluation)
    protocol = catalogue.protocol(terms.protocol.name)
    role = protocol.stages(params, terms.layout)[-1].party()
    return type(role).early_outcome is not PartyRole.early_outcome


def preview_runs(home: Home, stored: PartySession, rows: TableSpec) -> list[OwnRun]:
    """Return how each run clusters the party's rows, before a run is selected.

    Raises NotReady if this party has no labels yet. Raises GuardRefused if the session
    uses another table.
    """
    with home.resume(stored.session, stored.slot) as member:
        return own_runs(member, home.open_own_table(member, rows))


def own_runs(member: Party, data: DataSource) -> list[OwnRun]:
    """Return sizes and profile of the party's rows in each finished run.

    Sizes and profiles are computed locally, and nothing is sent.

    Raises GuardRefused if the session uses another table. Raises NotReady if this party
    has no labels yet. If the analyst labels the rows, a party has no labels before the
    result.
    """
    member.check_table(data)
    terms_runs = params_per_run(check_terms(member.terms), member.terms.evaluation)
    numbers = [getattr(run, "n_clusters", None) or 0 for run in terms_runs]
    pairs = zip(numbers, member.early_outcomes(), strict=False)
    runs = [
        _own_run(member, k, outcome, data)
        for k, outcome in pairs
        if outcome is not None
    ]
    if not runs:
        raise NotReady(
            "This party has no labels before the result: the runs are not done, or in "
            "this method the analyst labels the rows."
        )
    return runs


def _own_run(member: Party, k: int, outcome: Outcome, data: DataSource) -> OwnRun:
    terms, slot = member.terms, member.invitation.slot
    schema, column = terms.dictionary_of(slot), terms.layout.slot(slot).column
    sizes, labels, profile = outcome.cluster_sizes, outcome.labels, None
    if schema is not None:
        # no minimum size is needed, because the rows are the reader's own
        profile = own_profile(schema, data, labels, column, 1)
    own_sizes = np.bincount(labels[labels >= 0], minlength=k)
    return OwnRun(
        n_clusters=k,
        own_sizes=tuple(own_sizes.tolist()),
        sizes=() if sizes is None else tuple(sizes.tolist()),
        profile=profile,
    )
