"""`coterie party moves`: two files of labels beside each other, at home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.terminal.output import json_option, say

if TYPE_CHECKING:
    from party_sdk.results.label_moves import LabelMoves

_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("before", type=_file)
@click.argument("after", type=_file)
@click.option(
    "--match/--same-numbers",
    default=True,
    show_default=True,
    help="Whether clusters are matched by their common rows, or equal numbers count.",
)
@json_option
def moves(before: Path, after: Path, *, match: bool, as_json: bool) -> None:
    """Compare labels of two sessions or quarters by row id.

    BEFORE and AFTER are files of labels that 'run' or 'predict' wrote. You read how many
    rows are in another cluster now. Nothing is sent.
    """
    from party_sdk.results.label_moves import compare_files

    found = compare_files(before, after, match=match)
    if as_json:
        say(json.dumps(document(found)))
        return
    for line in move_lines(found):
        say(line)


def document(found: LabelMoves) -> dict[str, object]:
    """Return what moved as JSON values."""
    return {
        "common": found.n_common,
        "gone": found.n_gone,
        "new": found.n_new,
        "moved": found.n_moved,
        "before": list(found.before),
        "after": list(found.after),
        "counts": found.counts.tolist(),
        "matched": [list(pair) for pair in sorted(found.matched.items())],
    }


def move_lines(found: LabelMoves) -> Iterator[str]:
    """Yield how many rows moved, and from where to where."""
    from coterie_pages.formatting import share
    from party_sdk.cli.terminal.text_tables import align_columns

    said = share(found.n_moved, found.n_common)
    yield f"moved: {found.n_moved} of {found.n_common} rows that both name ({said})"
    yield f"in the first alone: {found.n_gone}; in the second alone: {found.n_new}"
    heads = ["", *(_name(label) for label in found.after), "same as"]
    lines = [
        [
            _name(label),
            *map(str, counts),
            _name(found.matched[label]) if label in found.matched else "none",
        ]
        for label, counts in zip(found.before, found.counts.tolist(), strict=True)
    ]
    yield from align_columns([heads, *lines])


def _name(label: int) -> str:
    return "none" if label < 0 else f"cluster {label}"
