"""`coterie table --link`: match keys that a table's columns make."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from party_sdk.cli.terminal.output import say
from party_sdk.home.policy import describe_quota

if TYPE_CHECKING:
    from party_sdk.tables import How
    from party_sdk.tables.linkage import KeyPreview


def show_match_keys(
    file: str, how: How, mapping_file: Path | None, *, as_json: bool
) -> None:
    """Print the proposed keys, and how the table's rows look by each of all."""
    from party_sdk.tables.linkage import propose_match_keys
    from party_sdk.tables.mapping import read_mapping

    if mapping_file is not None:
        how = replace(how, mapping=read_mapping(mapping_file))
    found = propose_match_keys(Path(file), how)
    if as_json:
        say(json.dumps([_figures(each) for each in found]))
        return
    for each in found:
        if each.serves:
            say(each.key)
        word = "" if each.serves else f"not proposed: {each.key}: "
        say(f"  {word}{each.sentence}", err=True)
        if each.serves:
            say(f"  first: {each.first_values}", err=True)
    if needs := describe_quota(sum(each.serves for each in found)):
        say(needs, err=True)


def _figures(each: KeyPreview) -> dict[str, object]:
    """Return what a program may log: no value of a cell."""
    shares = {"filled": each.completeness, "unique": each.uniqueness}
    return {"key": each.key, **shares, "serves": each.serves}
