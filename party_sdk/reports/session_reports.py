"""Build a coordinator's report of a session, and an archive of its documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from clustering_protocols import catalogue, session_terms
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.identities import fingerprint
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.signed_logs import SignedLog
from clustering_protocols.terms.terms import TERMS_VERSION
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from coterie_pages.models import AuditRow, SessionReport, Versions
from coterie_pages.views.session_views import (
    n_clusters_of,
    outcomes_in,
    result_of,
    slot_entries,
)
from coterie_pages.views.terms_sheet import sheet_of, versions_of
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.reports.run_reports import find_measured_method, seat_entries


def audited_report(
    coordinator: Coordinator, session: CoordinatedSession, status: SessionStatus
) -> tuple[SessionReport, SignedLog]:
    """Return the report of a session, and the audit log on which it is based.

    Raises like :func:`session_report` and :meth:`CoordinatedSession.audit`.
    """
    log = session.audit()
    institutions = coordinator.trusted_institutions
    return session_report(
        session, status, log, log.verified_entries(), institutions
    ), log


def session_report(
    session: CoordinatedSession,
    status: SessionStatus,
    log: SignedLog,
    entries: Sequence[Mapping[str, Any]],
    trusted_institutions: TrustedInstitutions,
) -> SessionReport:
    """Build a coordinator's report of a session so far.

    Terms, members and result are included only on the machine that opened the session,
    because they cannot be verified elsewhere.

    status: from :meth:`CoordinatedSession.status`.
    log: from :meth:`CoordinatedSession.audit`.
    entries: from :meth:`~SignedLog.verified_entries` of the log, which is slow.

    Raises AgreementMismatch or KeyNotAuthentic if the analyst's documents differ from
    those that were signed.
    """
    profiles = session.profiles()
    return SessionReport(
        session=status.id,
        title=status.title or status.id,
        protocol=status.protocol,
        runs=tuple(status.runs),
        state=status.state,
        reason=status.detail or "",
        created_at=status.created_at,
        profiles=profiles,
        outcomes=outcomes_in(session.terms, profiles) if session.is_ours else (),
        audit=tuple(map(AuditRow.of, entries)),
        signed_by=fingerprint(log.key),
        **(
            _verifiable_parts(session, status, trusted_institutions)
            if session.is_ours
            else {
                "sheet": None,
                "seats": tuple(slot_entries(status)),
                "versions": Versions(
                    coterie=version("coterie"),
                    protocol=catalogue.protocol(status.protocol).version,
                    terms=TERMS_VERSION,
                ),
            }
        ),
    )


def _verifiable_parts(
    session: CoordinatedSession,
    status: SessionStatus,
    trusted_institutions: TrustedInstitutions,
) -> dict[str, Any]:
    """Return the fields of a report that can be verified only on this machine."""
    terms, names_by_key = session.terms, trusted_institutions.names_by_key()
    if terms.identities.coordinator is not None:  # this machine holds the key
        names_by_key.setdefault(terms.identities.coordinator, "you")
    method, measured = find_measured_method(terms)
    parts: dict[str, Any] = {
        "sheet": sheet_of(session.terms_text, terms, names_by_key, url=session.url),
        "way": method,
        "measured": measured,
        "versions": versions_of(terms),
        "counts_linked": session_terms.check_terms(terms).counts_linked,
        "seats": tuple(slot_entries(status, terms.layout)),
    }
    if status.all_joined:
        roster = session.roster()
        parts["seats"] = tuple(seat_entries(roster, terms.layout))
        parts["safety_number"] = roster.safety_number
        parts["agreement"] = digest(session.agreement())
    if status.state is SessionState.COMPLETED:
        parts |= result_of(session.summary(), n_clusters_of(terms, status))
    return parts


def archive(
    session: CoordinatedSession,
    status: SessionStatus,
    report: SessionReport,
    page: str,
    log: SignedLog,
) -> bytes:
    """Return a zip archive of everything that the coordinator may read, and the report.

    ``terms.json`` and ``agreement.json`` contain the exact texts whose digests were
    signed. The analyst signed ``audit.json``, which ``coterie verify`` checks.
    """
    files: dict[str, str | bytes] = {
        "status.json": status.model_dump_json(indent=2),
        "audit.json": log.model_dump_json(),
        "report.json": report.model_dump_json(indent=2),
        "report.html": page,
    }
    if session.is_ours:
        files["terms.json"] = session.terms_text
        if status.all_joined:
            files["agreement.json"] = session.agreement()
        if status.state is SessionState.COMPLETED:
            result = summary_document(session.summary())
            files["result.json"] = json.dumps(result, indent=2)
    for profile in report.profiles:
        for number, time in enumerate(profile.survival, start=1):
            lines = (",".join(map(str, row)) for row in time.table)
            name = f"survival-{profile.column + 1}-{number}.csv"
            files[name] = "\n".join([f"# {time.name}, event {time.event}", *lines, ""])
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as zip_file:
        for name, content in sorted(files.items()):
            zip_file.writestr(_zip_entry(f"{session.id}/{name}"), content)
    return buffer.getvalue()


def summary_document(summary: Record) -> dict[str, Any]:
    """Return the complete result that the coordinator may read, as JSON values.

    It contains no labels, because only parties receive labels.
    """
    arrays = {name: array.tolist() for name, array in summary.arrays.items()}
    return {**summary.values, **arrays}


def _zip_entry(name: str) -> ZipInfo:
    """Return a zip entry without a timestamp, so that archives are reproducible."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry
