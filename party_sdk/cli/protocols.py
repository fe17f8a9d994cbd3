"""`coterie protocols`: what there is, and what each takes, without an analyst."""

import textwrap
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final

from party_sdk.cli.options import complete_protocols
from party_sdk.cli.parameters import argument, command
from party_sdk.cli.terminal.output import Output, align_columns

if TYPE_CHECKING:
    pass

_WIDTH: Final = 88


@command()
def protocols(
    name: Annotated[str | None, argument(shell_complete=complete_protocols)] = None,
) -> Output:
    """List the protocols; with NAME, say what one takes.

    That is its parameters with limits and defaults, who learns what, its risks, and
    what a party may decide alone.
    """
    from clustering_protocols import catalogue

    if name is not None:
        known = catalogue.describe(name)
        return Output(known, chain([f"{name}: {known['title']}"], _lines(known)))
    listed = {
        name: each for name, each in catalogue.catalogue().items() if each.methods
    }
    rows = [["PROTOCOL", "SPLIT", "WHAT IT IS"]]
    rows += [
        [name, ", ".join(each.partitionings), each.title]
        for name, each in listed.items()
    ]
    return Output([catalogue.describe(name) for name in listed], align_columns(rows))


def _lines(known: Mapping[str, Any]) -> Iterator[str]:
    from coterie_pages.form_fields import parameters_of

    yield from _wrap_text(known["summary"], "")
    yield from ("", "Parameters (--param NAME=VALUE):")
    for parameter in parameters_of(known["params"]):
        default = f"default {parameter.usual}" if parameter.usual else "required"
        told = "; ".join(filter(None, [parameter.kind, default]))
        yield f"  {parameter.name}  ({told})"
        yield from _wrap_text(str(parameter.schema.get("description", "")), "      ")
    for title, key in (
        ("Who learns what:", "learns"),
        ("Risks that sessions may bring:", "risks"),
        ("What a party may decide alone (--choice NAME=VALUE):", "choices"),
    ):
        yield from ("", title)
        for name, sentence in known[key].items():
            yield f"  {name}"
            yield from _wrap_text(sentence, "      ")


def _wrap_text(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)
