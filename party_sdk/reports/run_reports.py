"""Build a party's report of a session from its stored data, without the analyst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import InvalidParameters, NotReady
from clustering_protocols.common.suitability import Method, Partitioning
from clustering_protocols.contract import Params
from clustering_protocols.contract.published import TOOK_PART
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.shared_stages.profiles.profile import own_profile
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Layout, Terms
from clustering_protocols.wire.answers import RunLine
from coterie_pages.models import (
    NamedInstitution,
    Points,
    RunReport,
    SentLine,
    SlotEntry,
)
from coterie_pages.views.session_views import flatten, matrix_of, outcomes_in, sizes_of
from coterie_pages.views.terms_sheet import identify, sheet_of, versions_of
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.party.participant import Party
from party_sdk.party.roster import Roster
from party_sdk.results.cautions import result_cautions, site_warnings
from party_sdk.results.manifests import describe_session

if TYPE_CHECKING:
    from party_sdk.results.results import Result

_MOST_POINTS = 3_000


def session_manifest(member: Party) -> dict[str, Any]:
    """Return the manifest of a session for a publication, as JSON values.

    The table and the mapping appear as digests that are keyed with a secret of the
    home: the institution can prove later which ones it used, and nobody else can guess
    them. Sizes and figures are those that all parties receive.
    """
    stored, terms = member.stored, member.terms
    agreement, result = stored.agreement, _result_or_none(member)
    sizes = None if result is None else result.cluster_sizes
    return {
        "kind": "session-manifest",
        **describe_session(terms, "" if agreement is None else digest(agreement)),
        "table_keyed_digest": stored.keyed_table_digest(),
        "mapping_keyed_digest": stored.ledger.mapping_digest,
        "result": None
        if result is None
        else {
            "chosen": result.chosen,
            "sizes": None if sizes is None else sizes.tolist(),
            "runs": [run.model_dump(mode="json") for run in result.figures or ()],
        },
    }


def run_report(
    member: Party,
    home: Path,
    *,
    data: DataSource | None = None,
) -> RunReport:
    """Build the report of a party's part in a session so far.

    data: the party's own table; if it is given, the report plots its rows on two axes,
        and compares them with the profile of all parties.

    Raises GuardRefused if the party joined with another table. Raises NotReady if a
    table is given, but there is no result yet. Raises InvalidParameters if a table of
    counts is given, which cannot be plotted.
    """
    terms, slot, stored = member.terms, member.invitation.slot, member.stored
    identity, agreement = stored.load_identity(), stored.agreement
    institutions, line = TrustedInstitutions(home), identity.member
    roster = None if agreement is None else Roster.of(agreement, institutions, slot)
    result = _result_or_none(member)
    details = {} if result is None else dict(result_details(terms, result))
    if result is not None and data is not None:
        details["profiles"] = pair_profiles(member, result, data)
    is_description = result is not None and result.is_description
    points = None if data is None or is_description else _project(member, result, data)
    details["outcomes"] = outcomes_in(terms, details.get("profiles", ()))
    method, measured = find_measured_method(terms)
    seats = () if roster is None else tuple(seat_entries(roster, terms.layout, slot))
    return RunReport(
        session=terms.session,
        title=terms.title,
        protocol=terms.protocol.name,
        sheet=sheet_of(
            identity.terms.encode(),
            terms,
            institutions.names_by_key(),
            url=member.invitation.url,
            slot=slot,
            you=None
            if line is None
            else identify(line.identity, {line.identity: line.institution}),
        ),
        agreement="" if agreement is None else digest(agreement),
        seats=seats,
        safety_number="" if roster is None else roster.safety_number,
        way=method,
        measured=measured,
        versions=versions_of(terms),
        slot=slot,
        complete=result is not None,
        ended=identity.ended,
        n_rows=None if line is None else line.n_rows,
        linked="" if result is None else describe_linked_rows(terms, slot, result),
        points=points,
        names=stored.cluster_names,
        mapping=stored.ledger.mapping_digest,
        counts_linked=session_terms.check_terms(terms).counts_linked,
        left=tuple(
            SentLine.of(
                entry,
                entry=entry.get("sequence"),
                signed=bool(entry.get("signature")),
                told=entry.get("notes", {}),
            )
            for entry in stored.ledger.verified_entries()
        ),
        **details,
    )


def _result_or_none(member: Party) -> Result | None:
    try:
        return member.result()
    except NotReady:
        return None


def describe_linked_rows(terms: Terms, slot: str, result: Result) -> str:
    """Return how many of the party's rows are linked to others' rows, as ``n of m``.

    Returns an empty string if no other party has the same rows, or if the session only
    counted the people in common.
    """
    if not shares_rows(terms, slot) or session_terms.check_terms(terms).counts_linked:
        return ""
    n = len(result.labels)
    return str(result.report.get(TOOK_PART, f"{n} of {n}"))


def result_details(terms: Terms, result: Result) -> Mapping[str, Any]:
    """Return the fields of a report that are taken from a result."""
    own, sizes = tuple(result.own_sizes.tolist()), sizes_of(result.cluster_sizes)
    return {
        "runs": tuple(run_lines(terms, result)),
        "sizes": sizes,
        "own_sizes": own,
        "odd": (
            *(site_warnings(own, sizes) if sizes else ()),
            *result_cautions(terms, result),
        ),
        "without": len(result.labels) - sum(own),
        "centroids": matrix_of(result.centroids, result.columns),
        "profiles": result.profiles,
        "told": flatten(result.report),
    }


def run_lines(terms: Terms, result: Result) -> Iterator[RunLine]:
    """Yield each run with its quality figures; the selected run is marked."""
    for number, figures in enumerate(result.figures):
        runs = terms.evaluation
        k = figures.n_clusters if runs is None else runs.n_clusters[number]
        chosen = number == result.chosen
        yield RunLine(n_clusters=k, figures=figures.values, chosen=chosen)


def pair_profiles(
    member: Party, result: Result, data: DataSource
) -> tuple[Profile, ...]:
    """Return all profiles, each pooled one followed by that of the party's own rows."""
    terms, slot = member.terms, member.invitation.slot
    schema, column = terms.dictionary_of(slot), terms.layout.slot(slot).column
    profiles: list[Profile] = []
    for profile in result.profiles:
        profiles.append(profile)
        is_pooled = not profile.own and not profile.rounded and profile.column == column
        if is_pooled and schema is not None and terms.release is not None:
            smallest = terms.release.min_cluster_rows
            profiles.append(own_profile(schema, data, result.labels, column, smallest))
    return tuple(profiles)


def _project(member: Party, result: Result | None, data: DataSource) -> Points:
    from party_sdk.results.plots import project_rows

    if result is None:
        raise NotReady("There is no result to plot yet: run to the end first.")
    if result.item_memberships is not None:
        raise InvalidParameters("Objects with many items cannot be plotted.")
    member.check_table(data)
    rows, labels = member.select_clustered(data, result.labels)
    return project_rows(
        rows,
        labels,
        units=member.units(rows),
        limit=_MOST_POINTS,
        n_rows=len(result.labels),
        means=result.centroids,
        covariances=result.covariances,
    )


def seat_entries(
    roster: Roster, layout: Layout, own_slot: str = ""
) -> Iterator[SlotEntry]:
    """Yield an entry for each slot of the roster, marking the reader's ``own_slot``."""
    for seat in roster.seats:
        yield SlotEntry.of(
            layout.slot(seat.slot),
            who=NamedInstitution(
                name=seat.name, known=seat.known, fingerprint=seat.fingerprint
            ),
            own=seat.slot == own_slot,
            n_rows=seat.n_rows,
            n_columns=seat.n_columns,
        )


def find_measured_method(terms: Terms) -> tuple[str, tuple[float, float] | None]:
    """Return the method that the terms use, and its agreement with pooled clustering."""
    name, partitioning = terms.protocol.name, partitioning_of(terms.layout)
    method = find_method(name, session_terms.check_terms(terms), partitioning)
    if method is None:
        return "", None
    return method.name, method.agreement.get(partitioning)


def partitioning_of(layout: Layout) -> Partitioning:
    """Return how a layout divides the data: by rows, by columns, or both."""
    if layout.n_column_groups == 1:
        return "horizontal"
    return "vertical" if layout.n_row_groups == 1 else "mixed"


def find_method(name: str, params: Params, partitioning: Partitioning) -> Method | None:
    """Return the protocol's method for these parameters and this partitioning, or None."""
    algorithm = params.model_dump(mode="json").get("algorithm")
    default = catalogue.default_values(type(params)).get("algorithm")
    for method in catalogue.protocol(name).methods:
        has_algorithm = method.params.get("algorithm", default) == algorithm
        if has_algorithm and partitioning in method.partitionings:
            return method
    return None
