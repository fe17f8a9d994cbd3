"""What a home writes of a result for other programs, and what it calls the clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import InvalidParameters, NotReady
from party_sdk.application.home import Home
from party_sdk.application.outputs import Rows
from party_sdk.home.files import private_folder, write_private
from party_sdk.home.policy import Policy
from party_sdk.party import cluster_names
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

    names = folder.cluster_names.read()
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
    n_clusters = _count_clusters(home, folder)
    with folder.lock():
        return folder.cluster_names.change(names, n_clusters)


def seal_names(home: Home, folder: PartyFolder) -> dict[str, bytes]:
    """Return a letter with the own names to each who reads the profile, by slot.

    Raises NotReady if there is no result yet, or nothing has a name.
    Raises InvalidParameters if nobody else reads the profile.
    """
    with home.resume(folder.session, folder.slot, Policy()) as member:
        institution = member.identity
    kept = folder.cluster_names
    sender = cluster_names.LetterWriter(folder.slot, institution, kept.keys())
    with folder.lock():
        names = {c: name for c, name in enumerate(kept.read()) if name}
        if not names:
            raise NotReady(
                "No cluster has a name yet.",
                remedy="Name a cluster first; as a command: --name 3=SIDD.",
            )
        number = kept.number_letters()
    return cluster_names.write_letters(names, number, _agreement(folder), sender)


def name_letter_file(folder: PartyFolder, receiver: str) -> str:
    """Return how the file of a letter is called."""
    return f"{folder.session}-names-{folder.slot}-to-{receiver}.letter"


def send_names(home: Home, folder: PartyFolder, place: Path) -> list[Path]:
    """Write these letters to a folder; return the files."""
    letters = seal_names(home, folder)
    private_folder(place)
    written = []
    for receiver, letter in letters.items():
        path = place / name_letter_file(folder, receiver)
        write_private(path, letter)
        written.append(path)
    return written


def receive_names(home: Home, folder: PartyFolder, letters: Iterable[bytes]) -> None:
    """Keep the names in other parties' letters; of one that is refused, nothing.

    Raises NotReady if there is no result yet.
    Raises Malformed, EnvelopeRefused, KeyNotAuthentic or InvalidParameters if a letter
        does not fit.
    """
    n_clusters = _count_clusters(home, folder)
    agreement, keys = _agreement(folder), folder.cluster_names.keys()
    for text in letters:
        said = cluster_names.read_letter(text, agreement, keys, folder.slot)
        with folder.lock():
            folder.cluster_names.receive(said, n_clusters)


def _count_clusters(home: Home, folder: PartyFolder) -> int:
    with home.resume(folder.session, folder.slot, Policy()) as member:
        return len(member.result().own_sizes)


def _agreement(folder: PartyFolder) -> bytes:
    agreement = folder.load_agreement()
    if agreement is None:
        raise NotReady("Nobody has agreed to this session yet.")
    return agreement


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
