"""Pages that read, map and try a table of this home before there is any invitation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.terms.schema import Schema
from coterie_pages.desk_models import RowsPreview, TableScreen
from coterie_pages.models import Screen
from party_sdk.admission.table_files import TableSpec
from party_sdk.desk.responses import (
    Form,
    banner_of,
    desk_of,
    download,
    form_of,
    render_page,
)
from party_sdk.desk.tables.mapping_page import (
    NO_ID_COLUMN,
    build_mapping_page,
    ids_of,
    mapping_of,
)
from party_sdk.desk.tables.named_file import csv_of, describe_file, path_of, split_words
from party_sdk.results.label_files import write_labels
from party_sdk.tables import CheckReport, Dialect, ReadOptions, first_rows, list_columns
from party_sdk.tables.mapping import TableMapping, dump_mapping
from party_sdk.tables.variables import read_draft

if TYPE_CHECKING:
    from party_sdk.lab.trial import Trial

TABLES: Final = "/tables"
MAPPING: Final = f"{TABLES}/mapping"
TRIAL: Final = f"{TABLES}/trial"


def post_mapping(request: Request) -> Response:
    """Draft a mapping that fits a table to a dictionary, or try the submitted mapping."""
    form, folder = form_of(request), desk_of(request).tables
    path = path_of(form, folder, "dictionary")
    if not path:
        raise InvalidData("Name the dictionary: the file that the coordinator sent.")
    schema = read_draft(Path(path)).to_schema()
    content, trouble = build_mapping_page(
        form, folder, schema, partial(_check_against_dictionary, schema.used)
    )
    page = Screen(
        "desk/mapping.html.j2", place=MAPPING, dictionary=path, party=None, **content
    )
    return render_page(request, page, notice=trouble)


def post_file(request: Request) -> Response:
    """Return the mapping as a file, because the home stores mappings only for parties."""
    form = form_of(request)
    mapping = mapping_of(form.get("mapping")) or TableMapping()
    name = f"{Path(form.get('path')).stem or 'table'}.mapping.toml"
    return download(dump_mapping(mapping), name, "application/toml")


def post_trial(request: Request) -> Response:
    """Cluster a table as if its rows belonged to three institutions; nothing is sent."""
    path, trial = _run_trial(request)
    model = Screen(
        "desk/trial.html.j2",
        trial.report,
        path=path,
        csv=csv_of(form_of(request)),
        ids=trial.draft.options.id_columns,
        suggested=trial.suggested,
        left_out=dict(trial.draft.left_out),
        outliers=trial.source.report.outliers,
    )
    return render_page(request, model)


def post_trial_labels(request: Request) -> Response:
    """Repeat a trial, which is deterministic, and return its labels as a file."""
    table_path, trial = _run_trial(request)
    name = f"{Path(table_path).stem}-labels.csv"
    source, labels = trial.source, trial.session.whole.labels
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_labels(path, labels, source.ids, source.naming, {})
        return download(path.read_bytes(), name, "text/csv")


def _run_trial(request: Request) -> tuple[str, Trial]:
    from party_sdk.lab.trial import try_table

    form = form_of(request)
    path = path_of(form, desk_of(request).tables)
    dialect = Dialect.parse(split_words(csv_of(form)))
    options = ReadOptions(id_column=tuple(ids_of(form)), dialect=dialect)
    return path, try_table(Path(path), options)


def _check_against_dictionary(schema: Schema, spec: TableSpec) -> CheckReport:
    return replace(spec, options=replace(spec.options, schema=schema)).examine()


def get_tables(request: Request) -> Response:
    """Show the available files, and how the chosen one is read."""
    folder, form = desk_of(request).tables, form_of(request)
    path, csv, invalid = "", "", None
    try:
        path, csv = path_of(form, folder), csv_of(form)
    except CoterieError as error:
        invalid = banner_of(error)
    content, trouble = describe_file(
        folder, path, csv, lambda content: _describe_table(path, csv, form, content)
    )
    dictionary = form.get("dictionary").strip()
    model = TableScreen("desk/own-table.html.j2", dictionary=dictionary, **content)
    return render_page(request, model, notice=invalid or trouble)


def _describe_table(
    path: str, csv: str, form: Form, content: dict[str, Any]
) -> dict[str, Any]:
    """Describe how a table is read; its first rows follow once its id column is chosen."""
    if len(content["sheets"]) > 1 and not content.get("sheet"):
        return {}
    dialect = Dialect.parse(split_words(csv))
    names = list_columns(Path(path), ReadOptions(dialect=dialect))
    options = ReadOptions(
        id_column=tuple(name for name in ids_of(form) if name in names),
        dialect=dialect,
        allow=("running-number", "totals-row"),
    )
    report = TableSpec(path=path, options=options).examine()
    is_named = bool(options.id_column) or NO_ID_COLUMN in form.get_all("id")
    columns, rows = first_rows(Path(path), options) if is_named else ([], [])
    return {
        "ids": options.id_column,
        "names": tuple(names),
        "report": report,
        "is_named": is_named,
        "first": RowsPreview(names=tuple(columns), rows=tuple(map(tuple, rows))),
        "warnings": report.warning_sentences,
    }
