"""`coterie config check`: which settings are in force, and where each comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from analyst_service.cli.opening import read_settings, variable

if TYPE_CHECKING:
    from analyst_service.settings import Settings

_SECRETS: Final = (
    re.compile(r"(?P<kept>//[^/@\s]*?:)[^/@\s]*(?=@)"),  # //user:password@host
    re.compile(r"(?P<kept>(?i:password|secret|token|key)[^=&?]*=)[^&]*"),
)


@click.group()
def config() -> None:
    """Look at the settings of the analyst."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(*, as_json: bool) -> None:
    """Check the settings, and print what is in force and where it comes from.

    Passwords within addresses are not shown. Names that are nearly those of settings
    are named.
    """
    found = list(_in_force(read_settings()))
    if as_json:
        click.echo(json.dumps(found))
        return
    width = max(len(line["name"]) for line in found)
    for line in found:
        click.echo(f"{line['name']:{width}}  {line['source']:11}  {line['value']}")


def _in_force(settings: Settings) -> Iterator[dict[str, Any]]:
    for name, value in settings:
        is_set = name in settings.model_fields_set
        yield {
            "name": variable(name),
            "source": "environment" if is_set else "default",
            "value": _shown(value),
        }


def _shown(value: Any) -> Any:
    """Return a value as it is printed: numbers as they are, texts without secrets."""
    if isinstance(value, int | float):
        return value
    text = "" if value is None else str(value)
    for secret in _SECRETS:
        text = secret.sub(r"\g<kept>***", text)
    return text
