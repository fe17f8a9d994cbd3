"""Two files of labels beside each other: which rows moved to another cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError
from coterie_pages.models.desk import LabelMovesPage
from coterie_pages.models.new_rows import MovesTable
from party_sdk.desk.responses import Form, bad, desk_of, render_page
from party_sdk.desk.tables.named_file import path_of

if TYPE_CHECKING:
    from party_sdk.results.label_moves import LabelMoves


def get_moves(request: Request) -> Response:
    """Show the form, and what moved between the files that it names."""
    from party_sdk.results.label_moves import compare_files

    fields: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.url.query, keep_blank_values=True):
        fields.setdefault(name, []).append(value)
    form, folder = Form(fields), desk_of(request).tables
    before, after = (path_of(form, folder, name) for name in ("before", "after"))
    same_numbers, notice, found = bool(form.one("same-numbers")), None, None
    if before and after:
        try:
            moves = compare_files(Path(before), Path(after), match=not same_numbers)
            found = show_moves(moves)
        except CoterieError as error:
            notice = bad(error)
    model = LabelMovesPage(
        folder=str(folder),
        before=before,
        after=after,
        same_numbers=same_numbers,
        moves=found,
    )
    return render_page(request, model, notice=notice)


def show_moves(found: LabelMoves) -> MovesTable:
    """Return what moved, with clusters in words."""
    return MovesTable(
        common=found.n_common,
        gone=found.n_gone,
        new=found.n_new,
        moved=found.n_moved,
        after=tuple(map(_name, found.after)),
        lines=tuple(
            (_name(label), tuple(counts), _name(found.matched.get(label, -1)))
            for label, counts in zip(found.before, found.counts.tolist(), strict=True)
        ),
    )


def _name(label: int) -> str:
    return "none" if label < 0 else f"cluster {label}"
