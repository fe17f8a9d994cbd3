"""`coterie schema`: draft a data dictionary from a table, or build one from a list."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import click

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.cli.options import OUT, Force, ReadingOptions, check_new_files
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import say

if TYPE_CHECKING:
    from party_sdk.tables.variables import DictionaryDraft

_EVERY: Final = "*"
"""The value of --levels if the option is used without one."""


@click.group()
def schema() -> None:
    """Describe the columns of a table in a data dictionary."""


_DictionaryFile: TypeAlias = Annotated[
    Path | None,
    option("Where to write the dictionary (JSON); standard output by default."),
]


@command(schema)
def infer(
    file: Annotated[Path, argument()],
    *,
    reading: ReadingOptions,
    describe: Annotated[
        tuple[str, ...],
        option("Only describe this column in profiles (an outcome).", metavar="NAME"),
    ] = (),
    leave_out: Annotated[
        tuple[str, ...], option("Leave this column out.", metavar="NAME")
    ] = (),
    levels: Annotated[
        tuple[str, ...],
        option(
            "Levels of a variable; without a value, of all text columns, unconfirmed.",
            metavar="[NAME=A,B]",
            is_flag=False,
            flag_value=_EVERY,
        ),
    ] = (),
    out: _DictionaryFile = None,
    csv_out: Annotated[
        Path | None,
        option(
            "Where to write the table of variables (CSV), for a spreadsheet; 'coterie "
            "schema build' makes a dictionary of it."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Draft a dictionary of FILE: names, types and decimals, for you to complete.

    Numbers, dates and yes/no columns are proposed for clustering, so name the outcomes:
        --describe. Levels of text columns are written only if you confirm them or pass
        --levels: they come from your rows, and readers of the dictionary can see them.
    """
    from party_sdk.tables.drafts import draft_dictionary

    check_new_files([out, csv_out], file, force=force)
    confirm = (lambda *_: True) if _EVERY in levels else _confirm_levels
    draft = draft_dictionary(str(file), reading.read_options(), confirm)
    draft = draft.with_changes(_variable_changes(describe, leave_out, levels))
    for variable in draft.variables:
        why = draft.reasons.get(variable.name, "")
        if variable.role == "leave-out" and why:
            say(f"{variable.name!r} is left out: {why}.", err=True)
    _write_draft(draft, out, csv_out)


def _variable_changes(
    describe: Iterable[str], leave_out: Iterable[str], levels: Iterable[str]
) -> dict[str, dict[str, str]]:
    changes = {name: {"role": "describe"} for name in describe}
    for name in leave_out:
        if name in changes:
            raise InvalidParameters(f"{name!r} has two roles.")
        changes[name] = {"role": "leave-out"}
    for text in levels:
        name, sign, value = text.partition("=")
        if text == _EVERY:
            continue
        if not sign:
            raise InvalidParameters(
                f"--levels takes NAME=VALUE, not {text!r}. Put the file before the "
                "options."
            )
        name = name.strip()
        changes[name] = {**changes.get(name, {}), "levels": value}
    return changes


@command(schema)
def build(
    file: Annotated[Path, argument(type=OUT)],
    *,
    out: _DictionaryFile = None,
    force: Force = False,
) -> None:
    """Build a dictionary from FILE, a table of variables (CSV) saved by a spreadsheet.

    FILE has the columns that --csv-out writes; only 'name' is required.
    """
    from party_sdk.tables.variables import DictionaryDraft

    check_new_files([out], file, force=force)
    _write_draft(DictionaryDraft.read_csv(file), out, None)


def _write_draft(
    draft: "DictionaryDraft", out: Path | None, table_out: Path | None
) -> None:
    """Write a draft to files; if no file is named, print its dictionary."""
    if table_out is not None:
        table_out.write_text(draft.to_csv(), encoding="utf-8-sig", newline="")
        say(f"{len(draft.variables)} variables in {table_out}", err=True)
        if out is None:
            return
    dictionary = draft.to_schema()
    text = dictionary.model_dump_json(indent=2)
    if out is None:
        click.echo(text)
        return
    out.write_text(f"{text}\n", encoding="utf-8")
    counts = [
        f"{n} {verb}"
        for role, verb in (
            ("cluster", "clustered"),
            ("describe", "described"),
            ("leave-out", "left out"),
        )
        if (n := sum(field.role == role for field in dictionary.fields))
    ]
    say(f"{len(dictionary.fields)} fields in {out}: {', '.join(counts)}", err=True)


def _confirm_levels(name: str, levels: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    words = ", ".join(map(repr, levels))
    say(f"{name!r} contains {len(levels)} different words: {words}", err=True)
    return click.confirm("Write them as its levels?", err=True)
