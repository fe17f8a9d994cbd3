"""A result for other programs, at the desk."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import NotReady
from party_sdk.desk.party.addressed_party import kept_of
from party_sdk.desk.responses import file

_SCRIPT: Final = "R"


def get_export(request: Request) -> Response:
    """Return one file of an export: the table, the profile, or the script."""
    from party_sdk.application.exports import export_result

    kept = kept_of(request)
    part, ending = request.path_params["part"], request.path_params["ending"]
    order, folder = kept.order, kept.files.folder
    table = None if order is None or order.table is None else order.table
    rows = None if table is None else table.to_named_table()
    made = export_result(kept.desk.own_home, folder, rows)
    known = made.files(["csv" if ending == _SCRIPT else ending])
    name = f"{made.stem}.R" if ending == _SCRIPT else f"{made.stem}-{part}.{ending}"
    if name not in known:
        raise NotReady("This result has no such file.")
    with TemporaryDirectory() as place:
        path = Path(place) / name
        made.write_file(path)
        content = path.read_bytes()
    return file(content, name, "application/octet-stream")
