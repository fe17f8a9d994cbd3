"""The result of a run: shown, drawn, and as files to keep."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from coterie_pages.models import RunReport
from coterie_pages.models.desk import RunOutcome
from coterie_pages.models.frame import Banner
from coterie_pages.pages import page
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.responses import bad, file, form_of, render_page, to
from party_sdk.home.policy import Policy

FORMATS: Final = ("xlsx", "csv", "sav", "dta", "parquet")
_FORGOTTEN = "Labels were forgotten: rows can no longer be drawn."
_NO_TABLE = "The command line ran it: its report draws them (party report --data)."


def outcome(
    request: Request, kept: AddressedParty, notice: Banner | None = None
) -> Response:
    """Show the report of a run, with its files."""
    report, undrawn = _report(kept)
    said: dict[str, Any] = dict(report)
    has_labels = kept.labels.is_file()
    note = _note(kept) if has_labels else ""
    model = RunOutcome(
        **said,
        labels=has_labels,
        note=note,
        undrawn=undrawn,
        labels_new_rows=_labels_new_rows(kept),
        exports=_exports(kept, report),
        unlinked=report.complete and _links_by_keys(kept),
    )
    return render_page(request, model, notice=notice)


def _exports(kept: AddressedParty, report: RunReport) -> tuple[str, ...]:
    """Return which files for other programs there are, below the party's address."""
    if not kept.files.folder.exists or not report.complete:
        return ()
    order = kept.order
    has_table = order is not None and order.table is not None
    tables = [f"table.{ending}" for ending in FORMATS] if has_table else []
    profiles = ["profile.csv", "profile.xlsx"] if report.profiles else []
    return (*tables, *profiles, *(["script.R"] if tables and profiles else []))


def _labels_new_rows(kept: AddressedParty) -> bool:
    folder = kept.files.folder
    if not folder.exists or folder.load_result() is None:
        return False
    return kept.desk.own_home.labels_new_rows(kept.session, kept.slot)


def _note(kept: AddressedParty) -> str:
    """Return what a spreadsheet may do to the labels' ids."""
    from party_sdk.results.formula_cells import (
        formula_note,  # most pages read no labels
    )

    return formula_note(kept.labels)


def post_names(request: Request) -> Response:
    """Store what people here call the clusters; an empty name is taken back."""
    from party_sdk.application.exports import name_clusters

    kept, form = kept_of(request), form_of(request)
    names = {
        int(number): form.one(field).strip()
        for field in form.fields
        if (number := field.removeprefix("name-")) != field and number.isdigit()
    }
    try:
        name_clusters(kept.desk.own_home, kept.files.folder, names)
    except CoterieError as error:
        return outcome(request, kept, bad(error))
    return to(request, f"{kept.address}/report")


def get_report(request: Request) -> Response:
    """Show what may be said of a run, as far as it has come."""
    kept = kept_of(request)
    if not kept.has_accepted and not kept.has_result:
        return to(request, kept.address)
    return outcome(request, kept)


def get_report_file(request: Request) -> Response:
    """Return the report as a file that needs nothing else."""
    kept = kept_of(request)
    report, _ = _report(kept)
    return file(
        page(report).encode(), f"{_build_file_stem(kept)}-report.html", "text/html"
    )


def get_labels(request: Request) -> Response:
    """Return the labels, as the order wrote them."""
    kept = kept_of(request)
    try:
        content = kept.labels.read_bytes()
    except OSError:
        raise NotReady("There is no file of labels here.") from None
    name = f"{_build_file_stem(kept)}-labels{kept.labels.suffix}"
    return file(
        content,
        name,
        "text/csv" if name.endswith(".csv") else "application/octet-stream",
    )


def get_unlinked(request: Request) -> Response:
    """Return the own rows that were linked to nobody, by line, with what they lack."""
    from party_sdk.tables.linkage import write_unlinked

    kept = kept_of(request)
    order, here = kept.order, kept.desk.own_home
    if order is None or order.table is None:
        raise NotReady(_NO_TABLE)
    rows = order.table.to_named_table()
    with here.resume(kept.session, kept.slot, Policy()) as member:
        found = here.find_unlinked(member, rows, member.result())
    return file(
        write_unlinked(found), f"{_build_file_stem(kept)}-unlinked.csv", "text/csv"
    )


def _links_by_keys(kept: AddressedParty) -> bool:
    """Return whether match keys linked the rows of a table that is known here."""
    order = kept.order
    has_table = order is not None and order.table is not None
    return has_table and bool(agreed_in(kept.terms(), kept.slot).match_columns)


def _build_file_stem(kept: AddressedParty) -> str:
    return f"{kept.session}-{kept.slot}"


def _report(kept: AddressedParty) -> tuple[RunReport, str]:
    """Return the report, and why own rows are not drawn in it."""
    folder, here = kept.files.folder, kept.desk.own_home
    if not folder.exists:
        past = folder.forgotten() or folder
        if past.load_report() is None:
            raise NotReady("Nothing can be said of this run any more.")
        return here.archive.report(past), _FORGOTTEN
    order = kept.order
    if folder.load_result() is None:
        return here.archive.report(folder), ""
    if order is None or order.table is None:
        return here.archive.report(folder), _NO_TABLE
    try:
        return here.archive.report(folder, order.table.to_named_table()), ""
    except CoterieError as error:
        return here.archive.report(folder), error.detail
