"""The result of a run: shown, drawn, and as files to keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotReady
from coterie_pages.desk_models import TableScreen
from coterie_pages.models import Banner, RunReport, Screen
from coterie_pages.pages import page
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.order_pages import at_work
from party_sdk.desk.party.table_choice import (
    TableForm,
    describe_reading,
    describe_table,
)
from party_sdk.desk.responses import bad, file, form_of, query_of, render_page, to
from party_sdk.home.policy import Policy

if TYPE_CHECKING:
    from party_sdk.results.new_rows import NewRows

FORMATS: Final = ("xlsx", "csv", "sav", "dta", "parquet")
_FORGOTTEN = "Labels were forgotten: rows can no longer be drawn."
_NO_TABLE = "The command line ran it: its report draws them (party report --data)."
_ENDINGS: Final = frozenset({".csv", ".xlsx", ".parquet"})


def outcome(
    request: Request, kept: AddressedParty, notice: Banner | None = None
) -> Response:
    """Show the report of a run, with its files."""
    from party_sdk.results.label_files import formula_note  # most pages read no labels

    report, undrawn = _report(kept)
    has_labels = kept.labels.is_file()
    model = Screen(
        "desk/outcome.html.j2",
        report,
        labels=has_labels,
        note=formula_note(kept.labels) if has_labels else "",
        undrawn=undrawn,
        labels_new_rows=_labels_new_rows(kept),
        formats=FORMATS if _has_export(kept, report) else (),
        unlinked=report.complete and _links_by_keys(kept),
    )
    return render_page(request, model, notice=notice)


def _has_export(kept: AddressedParty, report: RunReport) -> bool:
    """Return whether the table with clusters can be downloaded."""
    order = kept.order
    has_table = order is not None and order.table is not None
    return has_table and kept.files.stored.exists and report.complete


def _labels_new_rows(kept: AddressedParty) -> bool:
    folder = kept.files.stored
    if not folder.exists or folder.result is None:
        return False
    return kept.desk.own_home.labels_new_rows(kept.session, kept.slot)


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
        name_clusters(kept.desk.own_home, kept.files.stored, names)
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
    return file(page(report).encode(), f"{kept.file_stem}-report.html", "text/html")


def get_labels(request: Request) -> Response:
    """Return the labels, as the order wrote them."""
    kept = kept_of(request)
    try:
        content = kept.labels.read_bytes()
    except OSError:
        raise NotReady("There is no file of labels here.") from None
    name = f"{kept.file_stem}-labels{kept.labels.suffix}"
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
    rows = order.table.to_spec()
    with here.resume(kept.session, kept.slot, Policy()) as member:
        found = here.find_unlinked(member, rows, member.result())
    return file(write_unlinked(found), f"{kept.file_stem}-unlinked.csv", "text/csv")


def _links_by_keys(kept: AddressedParty) -> bool:
    """Return whether match keys linked the rows of a table that is known here."""
    order = kept.order
    has_table = order is not None and order.table is not None
    return has_table and bool(agreed_in(kept.terms(), kept.slot).match_columns)


def _report(kept: AddressedParty) -> tuple[RunReport, str]:
    """Return the report, and why own rows are not drawn in it."""
    folder, here = kept.files.stored, kept.desk.own_home
    if not folder.exists:
        past = folder.forgotten() or folder
        if past.report is None:
            raise NotReady("Nothing can be said of this run any more.")
        return here.report(past), _FORGOTTEN
    order = kept.order
    if folder.result is None:
        return here.report(folder), ""
    if order is None or order.table is None:
        return here.report(folder), _NO_TABLE
    try:
        return here.report(folder, order.table.to_spec()), ""
    except CoterieError as error:
        return here.report(folder), error.detail


def get_export(request: Request) -> Response:
    """Return the table with the cluster of each row, as the format that is chosen."""
    from party_sdk.application.exports import export_table
    from party_sdk.results.exports import write_export

    kept = kept_of(request)
    order, folder = kept.order, kept.files.stored
    if order is None or order.table is None:
        raise NotReady("The desk knows no table of this party yet: name it first.")
    columns = export_table(kept.desk.own_home, folder, order.table.to_spec())
    ending = request.query_params.get("format", "csv")
    name = f"{folder.session}-{folder.slot}-clusters.{ending}"
    with TemporaryDirectory() as place:
        path = Path(place) / Path(name).name
        write_export(path, columns)
        content = path.read_bytes()
    return file(content, path.name, "application/octet-stream")


def get_runs(request: Request) -> Response:
    """Show sizes and profile of the own rows in each run; nothing is sent."""
    from party_sdk.application.exports import look_at_runs

    kept = kept_of(request)
    order = kept.order
    if order is None or order.table is None:
        raise NotReady("The desk knows no table of this party yet: name it first.")
    table, folder = order.table.to_spec(), kept.files.stored
    try:
        runs, overlaps = look_at_runs(kept.desk.own_home, folder, table)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    page = Screen(
        "desk/own-runs.html.j2",
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        runs=tuple(runs),
        overlaps=tuple(overlaps),
    )
    return render_page(request, page)


def get_new_rows(request: Request) -> Response:
    """Show the files to choose from, or how the chosen one is read."""
    kept = _find_party(request)
    chosen = TableForm.of(query_of(request), kept.desk.tables)
    return _choice_page(request, kept, chosen)


def post_new_rows(request: Request) -> Response:
    """Label the rows, and show what is said of them as a whole."""
    kept, form = _find_party(request), form_of(request)
    chosen = TableForm.of(form, kept.desk.tables)
    found = _label(request, kept, chosen)
    if isinstance(found, Response):
        return found
    if found.summary is None:
        refused = NotReady("Nothing is kept here that new rows are compared with.")
        return _choice_page(request, kept, chosen, bad(refused))
    model = Screen(
        "desk/labelled-rows.html.j2",
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        chosen=chosen,
        agreed=bool(form.one("agree")),
        summary=found.summary,
    )
    return render_page(request, model)


def post_file(request: Request) -> Response:
    """Label the rows again, and return them as a file: none is kept at home."""
    kept, form = _find_party(request), form_of(request)
    chosen, ending = TableForm.of(form, kept.desk.tables), form.one("ending")
    if ending not in _ENDINGS:
        refused = InvalidParameters("no such kind of file.", field="ending")
        return _choice_page(request, kept, chosen, bad(refused))
    found = _label(request, kept, chosen)
    if isinstance(found, Response):
        return found
    name = f"{kept.session}-{kept.slot}-{Path(chosen.path).stem}-labels{ending}"
    media = "text/csv" if ending == ".csv" else "application/octet-stream"
    return file(found.encode(ending), name, media)


def _find_party(request: Request) -> AddressedParty:
    """Return the party of an address; :class:`NotReady` where it labels no new rows."""
    kept = kept_of(request)
    if not kept.desk.own_home.labels_new_rows(kept.session, kept.slot):
        raise NotReady(
            "The terms of this session release nothing that labels new rows."
        )
    return kept


def _label(
    request: Request, kept: AddressedParty, chosen: TableForm
) -> NewRows | Response:
    """Return the rows with their labels, or the choice again with what is wrong.

    Rows that look like other units are labelled where the form agrees to that.
    """
    doubts: list[str] = []

    def agree(doubt: str) -> bool:
        doubts.append(doubt)
        return bool(form_of(request).one("agree"))

    try:
        # the session says which columns it clustered
        table = replace(chosen, columns=None).to_ordered_table().to_spec()
        return kept.desk.own_home.label(kept.session, kept.slot, table, agree=agree)
    except CoterieError as error:
        notice = None if doubts else bad(error)
        return _choice_page(request, kept, chosen, notice, doubt="".join(doubts))


def _choice_page(
    request: Request,
    kept: AddressedParty,
    chosen: TableForm,
    notice: Banner | None = None,
    *,
    doubt: str = "",
) -> Response:
    said, trouble = describe_reading(kept, chosen, _read)
    model = TableScreen("desk/new-rows.html.j2", place="new-rows", doubt=doubt, **said)
    return render_page(request, model, notice=notice or trouble)


def _read(kept: AddressedParty, chosen: TableForm) -> dict[str, Any]:
    """Return how a table is read, and whether its rows can get labels."""
    from party_sdk.tables import column_names

    named = replace(chosen, columns=None).to_ordered_table().to_spec()
    named = named.with_mapping(kept.files.stored.mappings.for_new_rows())
    if not chosen.checked:  # what named the rows of the run is ticked at first
        names = column_names(Path(named.path), named.options)
        usual = tuple(name for name in _usual_ids(kept) if name in names)
        chosen = replace(chosen, ids=usual)
    agreed = agreed_in(kept.terms(), kept.slot)
    columns = kept.files.stored.load_identity().columns
    return describe_table(
        named, chosen, columns, lambda: named.check_new_rows(agreed, columns)
    )


def _usual_ids(kept: AddressedParty) -> tuple[str, ...]:
    """Return the columns that named the rows of the run, where the desk ran it."""
    order = kept.order
    return () if order is None or order.table is None else order.table.id_column
