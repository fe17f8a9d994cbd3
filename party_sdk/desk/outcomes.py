"""The result of a run: shown, drawn, and as files to keep."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.errors import CoterieError, NotReady
from coterie_pages.models import RunReport
from coterie_pages.models.desk import Outcome
from coterie_pages.pages import page
from party_sdk.desk.answers import file, shown, to
from party_sdk.desk.kept import Kept, kept_of
from party_sdk.run_reports import run_report

_FORGOTTEN = "Labels were forgotten: rows can no longer be drawn."
_NO_TABLE = "The command line ran it: its report draws them (party report --data)."


def outcome(request: Request, kept: Kept) -> Response:
    """Show the report of a run, with its files."""
    report, undrawn = _report(kept)
    said: dict[str, Any] = dict(report)
    model = Outcome(**said, labels=kept.labels.is_file(), undrawn=undrawn)
    return shown(request, model)


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
    return file(page(report).encode(), f"{_named(kept)}-report.html", "text/html")


def get_labels(request: Request) -> Response:
    """Return the labels, as the order wrote them."""
    kept = kept_of(request)
    try:
        content = kept.labels.read_bytes()
    except OSError:
        raise NotReady("There is no file of labels here.") from None
    name = f"{_named(kept)}-labels{kept.labels.suffix}"
    return file(
        content,
        name,
        "text/csv" if name.endswith(".csv") else "application/octet-stream",
    )


def _named(kept: Kept) -> str:
    return f"{kept.session}-{kept.slot}"


def _report(kept: Kept) -> tuple[RunReport, str]:
    """Return the report, and why own rows are not drawn in it."""
    folder = kept.files.folder
    if not folder.exists:
        past = folder.forgotten() or folder
        written = past.load_report()
        if written is None:
            raise NotReady("Nothing can be said of this run any more.")
        return RunReport.model_validate_json(written), _FORGOTTEN
    home = kept.desk.home
    with kept.member() as member:
        order = kept.order
        if folder.load_result() is None:
            return run_report(member, home), ""
        if order is None or order.table is None:
            return run_report(member, home), _NO_TABLE
        try:
            columns = folder.load_identity().columns
            data = order.table.named().open(member.agreed, columns)
            return run_report(member, home, data=data), ""
        except CoterieError as error:
            return run_report(member, home), error.detail
