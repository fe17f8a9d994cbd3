"""Pages about a party's result: its report, its downloads, and labels for new rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotReady
from coterie_pages.desk_models import TableScreen
from coterie_pages.models import RunReport, Screen
from coterie_pages.pages import render_html
from party_sdk.admission.table_admission import slot_fields_of
from party_sdk.admission.table_files import TableSpec
from party_sdk.application.exports import export_table, name_clusters, preview_runs
from party_sdk.desk.party.addressed_party import AddressedParty, requested_party
from party_sdk.desk.party.table_choice import TableForm, describe_table
from party_sdk.desk.responses import download, form_of, redirect_to, render_page
from party_sdk.desk.tables.named_file import describe_file
from party_sdk.results.exports import installed_formats, write_export
from party_sdk.results.label_files import formula_advice
from party_sdk.results.new_rows import NewRows
from party_sdk.tables import list_columns
from party_sdk.tables.linkage import unlinked_to_csv

_FORGOTTEN = "The labels were deleted, so no rows can be plotted."
_NO_TABLE = "The command line ran this party: use coterie party report --data."
_ENDINGS: Final = frozenset({".csv", ".xlsx", ".parquet"})


def render_report_page(request: Request, party: AddressedParty) -> Response:
    """Show the report of a party's run, with links to its files."""
    report, undrawn = _report(party)
    has_labels, is_stored = party.labels_path.is_file(), party.stored.exists
    is_complete = party.table is not None and report.complete
    has_result = is_stored and party.stored.result is not None
    model = Screen(
        "desk/outcome.html.j2",
        report,
        labels=has_labels,
        note=formula_advice(party.labels_path) if has_labels else "",
        undrawn=undrawn,
        can_label_new_rows=has_result
        and party.desk.own_home.can_label_new_rows(party.session, party.slot),
        formats=installed_formats() if is_complete and is_stored else (),
        unlinked=is_complete
        and bool(slot_fields_of(party.terms(), party.slot).match_key_columns),
    )
    return render_page(request, model)


def post_names(request: Request) -> Response:
    """Store the submitted names of clusters; an empty field removes a name."""
    party, form = requested_party(request), form_of(request)
    names = {
        int(number): form.get(field).strip()
        for field in form.fields
        if (number := field.removeprefix("name-")) != field and number.isdigit()
    }
    name_clusters(party.desk.own_home, party.stored, names)
    return redirect_to(request, f"{party.address}/report")


def get_report(request: Request) -> Response:
    """Show the report of a party's run, which may not be complete yet."""
    party = requested_party(request)
    if not party.has_accepted and not party.has_result:
        return redirect_to(request, party.address)
    return render_report_page(request, party)


def get_report_file(request: Request) -> Response:
    """Return the report as a self-contained HTML file."""
    party = requested_party(request)
    report, _ = _report(party)
    return download(
        render_html(report).encode(), f"{party.file_stem}-report.html", "text/html"
    )


def get_labels(request: Request) -> Response:
    """Return the labels file that the party's order wrote."""
    party = requested_party(request)
    try:
        content = party.labels_path.read_bytes()
    except OSError:
        raise NotReady("There is no label file here.") from None
    name = f"{party.file_stem}-labels{party.labels_path.suffix}"
    return download(
        content,
        name,
        "text/csv" if name.endswith(".csv") else "application/octet-stream",
    )


def get_unlinked(request: Request) -> Response:
    """Return a CSV table of the rows that were not linked to any other party's rows."""
    party = requested_party(request)
    table = _table_of(party)
    with party.desk.own_home.resume(party.session, party.slot) as member:
        rows = party.desk.own_home.find_unlinked(member, table, member.result())
    return download(
        unlinked_to_csv(rows), f"{party.file_stem}-unlinked.csv", "text/csv"
    )


def _report(party: AddressedParty) -> tuple[RunReport, str]:
    stored, home, table = party.stored, party.desk.own_home, party.table
    if not stored.exists:
        past = stored.last_forgotten() or stored
        if past.report is None:
            raise NotReady("This run has no figures any more.")
        return home.report(past), _FORGOTTEN
    if stored.result is None:
        return home.report(stored), ""
    if table is None:
        return home.report(stored), _NO_TABLE
    try:
        return home.report(stored, table.to_spec()), ""
    except CoterieError as error:
        return home.report(stored), error.detail


def get_export(request: Request) -> Response:
    """Return the party's table with the cluster of each row, in the requested format."""
    party = requested_party(request)
    columns = export_table(party.desk.own_home, party.stored, _table_of(party))
    ending = request.query_params.get("format", "csv")
    name = f"{party.file_stem}-clusters.{ending}"
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / Path(name).name
        write_export(path, columns)
        content = path.read_bytes()
    return download(content, path.name, "application/octet-stream")


def _table_of(party: AddressedParty) -> TableSpec:
    if party.table is None:
        raise NotReady("The desk knows no table of this party yet: name it first.")
    return party.table.to_spec()


def get_runs(request: Request) -> Response:
    """Show how each run clusters the party's rows; nothing is sent to the analyst."""
    party = requested_party(request)
    table = _table_of(party)
    runs = preview_runs(party.desk.own_home, party.stored, table)
    page = Screen("desk/own-runs.html.j2", party=party, runs=runs)
    return render_page(request, page)


def get_new_rows(request: Request) -> Response:
    """Show the available files or, once one is chosen, how its rows are read."""
    return _choice_page(request, _find_party(request))


def post_new_rows(request: Request) -> Response:
    """Label the rows of the chosen file, and show a summary of the labels."""
    party, form = _find_party(request), form_of(request)
    labelled = _label_new_rows(request, party)
    if isinstance(labelled, Response):
        return labelled
    if labelled.summary is None:
        raise NotReady("No trained rows are stored here for a comparison.")
    model = Screen(
        "desk/labelled-rows.html.j2",
        party=party,
        chosen=TableForm.from_form(form, party.desk.tables),
        agreed=bool(form.get("agree")),
        formats=installed_formats(),
        summary=labelled.summary,
    )
    return render_page(request, model)


def post_file(request: Request) -> Response:
    """Label the rows again and return them as a download, which the home does not store."""
    party, form = _find_party(request), form_of(request)
    ending = form.get("ending")
    if ending not in _ENDINGS:
        raise InvalidParameters("no such kind of file.", field="ending")
    labelled = _label_new_rows(request, party)
    if isinstance(labelled, Response):
        return labelled
    name = f"{party.file_stem}-{Path(form.get('path')).stem}-labels{ending}"
    media = "text/csv" if ending == ".csv" else "application/octet-stream"
    return download(labelled.encode(ending), name, media)


def _find_party(request: Request) -> AddressedParty:
    """Return the requested party; raise :class:`NotReady` if it cannot label new rows."""
    party = requested_party(request)
    if not party.desk.own_home.can_label_new_rows(party.session, party.slot):
        raise NotReady(
            "The terms of this session release no model that labels new rows."
        )
    return party


def _label_new_rows(request: Request, party: AddressedParty) -> NewRows | Response:
    """Return the labelled rows, or the page for choosing a file with a question.

    Rows that appear to be in other units are labelled only if the form confirms it.
    """
    form, doubts = form_of(request), list[str]()

    def agree(doubt: str) -> bool:
        doubts.append(doubt)
        return bool(form.get("agree"))

    table_form = TableForm.from_form(form, party.desk.tables)
    try:
        # the session determines which columns are clustered
        table = replace(table_form, columns=None).to_ordered_table().to_spec()
        home = party.desk.own_home
        return home.label(party.session, party.slot, table, agree=agree)
    except CoterieError:
        if not doubts:
            raise
        return _choice_page(request, party, "".join(doubts))


def _choice_page(request: Request, party: AddressedParty, doubt: str = "") -> Response:
    table_form = TableForm.from_form(form_of(request), party.desk.tables)
    reading, trouble = describe_file(
        party.desk.tables,
        table_form.path,
        table_form.csv,
        lambda _: _describe_new_rows(party, table_form),
    )
    model = TableScreen(
        "desk/new-rows.html.j2", place="new-rows", party=party, doubt=doubt, **reading
    )
    return render_page(request, model, notice=trouble)


def _describe_new_rows(party: AddressedParty, table_form: TableForm) -> dict[str, Any]:
    table = replace(table_form, columns=None).to_ordered_table().to_spec()
    table = table.with_mapping(party.stored.mappings.for_new_rows())
    if not table_form.checked and party.table is not None:  # preset the run's ids
        names = list_columns(Path(table.path), table.options)
        id_columns = tuple(name for name in party.table.id_column if name in names)
        table_form = replace(table_form, ids=id_columns)
    fields = slot_fields_of(party.terms(), party.slot)
    fields, columns = fields.of_new_rows(party.stored.load_identity().columns)
    return describe_table(
        table,
        table_form,
        columns
        if fields.dictionary is None
        else fields.dictionary.clustered_part.names,
        lambda: table.check_new_rows(fields, columns),
    )
