"""`coterie table --link`: match keys that a table's columns make."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from party_sdk.cli.terminal.output import say

if TYPE_CHECKING:
    from party_sdk.tables import How


def show_match_keys(
    file: str, how: How, mapping_file: Path | None, *, as_json: bool
) -> None:
    """Print the proposed keys, and how the table's rows look by each of all."""
    from party_sdk.tables import read_mapping
    from party_sdk.tables.linkage.proposed_keys import propose_match_keys

    if mapping_file is not None:
        how = replace(how, mapping=read_mapping(mapping_file))
    found = propose_match_keys(Path(file), how)
    if as_json:
        say(json.dumps([{**asdict(each), "serves": each.serves} for each in found]))
        return
    for each in found:
        if each.serves:
            say(each.key)
        told = f"{each.filled:.1%} of the rows have a value, {each.unique:.1%} of these"
        word = "" if each.serves else f"not proposed: {each.key}: "
        say(f"  {word}{told} one that no other row has", err=True)
