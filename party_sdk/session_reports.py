"""A coordinator's report of a session, and the archive of all that it may read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from clustering_protocols import registry
from clustering_protocols.secrecy.identities import fingerprint
from clustering_protocols.terms import Terms, digest
from clustering_protocols.wire.states import SessionState
from coterie_pages.models import Line, Run, Seat, SessionReport
from coterie_pages.terms import sheet_of, versions_here, versions_of
from party_sdk.identities import Acquaintances
from party_sdk.reported import expected, matrix_of, plain, seats_of, sizes_of

if TYPE_CHECKING:
    from clustering_protocols.proofs import SignedLog
    from clustering_protocols.records import Record
    from clustering_protocols.wire.answers import SessionStatus
    from party_sdk.coordinator import CoordinatedSession

_OTHER_ARRAYS = frozenset({"cluster_sizes", "clusters", "sizes", "centroids", "starts"})


def session_report(
    opened: CoordinatedSession,
    log: SignedLog,
    acquaintances: Acquaintances,
) -> SessionReport:
    """Return what a coordinator may say of a session, as far as it has come.

    Terms, members and result are there where the session was opened: only there can they
    be checked.

    Parameters
    ----------
    log : SignedLog
        Its audit: :meth:`CoordinatedSession.audit`.

    Raises
    ------
    AgreementMismatch, KeyNotAuthentic
        If what the analyst shows is not what was signed.
    """
    status = opened.status()
    return SessionReport(
        session=status.id,
        title=status.title or status.id,
        protocol=status.protocol,
        runs=tuple(
            Run(n_clusters=run.n_clusters, figures=run.figures, chosen=run.chosen)
            for run in status.runs
        ),
        profiles=opened.profiles(),
        state=status.state,
        reason=status.detail or "",
        created_at=status.created_at,
        risks=tuple(status.risks),
        audit=tuple(map(_line, log.entries())),
        signed_by=fingerprint(log.key),
        **(
            _checked_here(opened, status, acquaintances)
            if opened.is_ours
            else _shown(status)
        ),
    )


def _checked_here(
    opened: CoordinatedSession, status: SessionStatus, acquaintances: Acquaintances
) -> dict[str, Any]:
    """Return what can be held against what was signed on this machine."""
    terms, known = opened.terms, dict(acquaintances.read())
    if terms.identities.coordinator is not None:  # it was signed on this machine
        known.setdefault(terms.identities.coordinator, "you")
    way, measured = expected(terms)
    said: dict[str, Any] = {
        "sheet": sheet_of(opened.terms_text, terms, known, url=opened.url),
        "way": way,
        "expected": measured,
        "versions": versions_of(terms),
        "seats": tuple(_awaited(status)),
    }
    if status.all_joined:
        roster = opened.roster()
        said["seats"] = tuple(seats_of(roster, terms.layout))
        said["safety_number"] = roster.safety_number
        said["agreement"] = digest(opened.agreement())
    if status.state is SessionState.COMPLETED:
        said |= result_of(opened.summary(), _n_clusters(terms, status))
    return said


def _n_clusters(terms: Terms, status: SessionStatus) -> int | None:
    """Return how many clusters were asked for, of the run that counts."""
    chosen = [run.n_clusters for run in status.runs if run.chosen]
    if terms.evaluation is not None and chosen:
        return chosen[0]
    found: int | None = getattr(registry.check_terms(terms), "n_clusters", None)
    return found


def _shown(status: SessionStatus) -> dict[str, Any]:
    """Return what the analyst says, on another machine than that of the opening."""
    return {
        "sheet": None,
        "seats": tuple(_awaited(status)),
        "versions": versions_here(status.protocol),
    }


def _awaited(status: SessionStatus) -> Iterator[Seat]:
    for slot in status.slots:
        yield Seat(
            slot=slot.name,
            row=slot.row,
            column=slot.column,
            state=slot.state,
            reason=slot.reason or "",
            joined_at=slot.joined_at,
            n_rows=slot.n_rows,
        )


def result_of(summary: Record, n_clusters: int | None) -> dict[str, Any]:
    """Return sizes, centroids and what else the coordinator may read of a result.

    Where a protocol tells no sizes of small clusters, those that it tells are named.
    """
    arrays = summary.arrays
    sizes, clusters = arrays.get("cluster_sizes"), arrays.get("clusters")
    told = plain(summary.values)
    told |= {
        name: ", ".join(map(str, array.tolist()))
        for name, array in arrays.items()
        if array.ndim == 1 and array.size and name not in _OTHER_ARRAYS
    }
    if clusters is not None and "sizes" in arrays:
        sizes = arrays["sizes"]
        if clusters.tolist() != list(range(n_clusters or len(clusters))):
            pairs = zip(clusters.tolist(), sizes.tolist(), strict=True)
            told["rows of large clusters"] = ", ".join(f"{c}: {n}" for c, n in pairs)
            sizes = None
    return {
        "sizes": sizes_of(sizes),
        "centroids": matrix_of(arrays.get("centroids"), ()),
        "told": told,
    }


def _line(entry: Mapping[str, Any]) -> Line:
    return Line(
        number=entry["number"],
        at=entry["at"],
        event=entry["event"],
        slot=entry.get("slot") or "",
        round=entry.get("round") or 0,
        attempt=entry.get("attempt") or 0,
        reason=entry.get("reason") or "",
        digest=entry.get("digest") or "",
    )


def archive(
    opened: CoordinatedSession, report: SessionReport, page: str, log: SignedLog
) -> bytes:
    """Return a zip file of everything that the coordinator may read, with its report.

    ``terms.json`` and ``agreement.json`` are exact texts, whose digests others have
    signed; ``audit.json`` is signed by the analyst (``coterie verify``).
    """
    status = opened.status()
    files: dict[str, str | bytes] = {
        "status.json": status.model_dump_json(indent=2),
        "audit.json": log.model_dump_json(),
        "report.json": report.model_dump_json(indent=2),
        "report.html": page,
    }
    if opened.is_ours:
        files["terms.json"] = opened.terms_text
        if status.all_joined:
            files["agreement.json"] = opened.agreement()
        if status.state is SessionState.COMPLETED:
            files["result.json"] = json.dumps(_as_json(opened.summary()), indent=2)
    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as archived:
        for name, content in sorted(files.items()):
            archived.writestr(_entry(f"{opened.id}/{name}"), content)
    return written.getvalue()


def _as_json(summary: Record) -> dict[str, Any]:
    arrays = {name: array.tolist() for name, array in summary.arrays.items()}
    return {**summary.values, **arrays}


def _entry(name: str) -> ZipInfo:
    """Return an entry without the time of writing: equal content, equal bytes."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry
