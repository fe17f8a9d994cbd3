"""`coterie protocols`: describe the protocols and their parameters, without an analyst."""

import textwrap
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Final

from party_sdk.cli.parameters import argument, command
from party_sdk.cli.terminal.output import Output, align_columns

_WIDTH: Final = 88


@command()
def protocols(
    name: Annotated[str | None, argument()] = None,
) -> Output:
    """List the protocols, or describe the protocol NAME.

    A description contains the parameters with their limits and defaults, who learns
    what, the risks, and the choices that each party makes.
    """
    from clustering_protocols import catalogue

    if name is not None:
        protocol = catalogue.build_catalogue_entry(name)
        return Output(
            protocol, chain([f"{name}: {protocol['title']}"], _protocol_lines(protocol))
        )
    entries = {
        name: entry for name, entry in catalogue.catalogue().items() if entry.methods
    }
    rows = [["PROTOCOL", "SPLIT", "WHAT IT IS"]]
    rows += [
        [name, ", ".join(entry.partitionings), entry.title]
        for name, entry in entries.items()
    ]
    return Output(
        [catalogue.build_catalogue_entry(name) for name in entries], align_columns(rows)
    )


def _protocol_lines(protocol: Mapping[str, Any]) -> Iterator[str]:
    from coterie_pages.form_fields import parameters_of

    yield from _wrap_text(protocol["summary"], "")
    yield from ("", "Parameters (--param NAME=VALUE):")
    for parameter in parameters_of(protocol["params"]):
        default = (
            f"default {parameter.default_json}"
            if parameter.default_json
            else "required"
        )
        facts = "; ".join(filter(None, [parameter.kind, default]))
        yield f"  {parameter.name}  ({facts})"
        yield from _wrap_text(str(parameter.schema.get("description", "")), "      ")
    for title, key in (
        ("Who learns what:", "learns"),
        ("Risks that sessions may bring:", "risks"),
        ("What a party may decide alone (--choice NAME=VALUE):", "choices"),
    ):
        yield from ("", title)
        for name, sentence in protocol[key].items():
            yield f"  {name}"
            yield from _wrap_text(sentence, "      ")


def _wrap_text(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)
