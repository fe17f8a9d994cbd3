"""`coterie config`: which settings are in force, and what belongs to the database."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from analyst_service.cli.context import (
    current_database,
    foreign_store,
    open_parts,
    operator,
    read_settings,
)

if TYPE_CHECKING:
    from analyst_service.settings import Settings

_SECRETS: Final = (
    re.compile(r"(?P<kept>//[^/@\s]*?:)[^/@\s]*(?=@)"),  # //user:password@host
    re.compile(r"(?P<kept>(?i:password|secret|token|key)[^=&?]*=)[^&]*"),
)


@click.group()
def config() -> None:
    """Look at the settings of the analyst, and take them over."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(*, as_json: bool) -> None:
    """Check the settings, and print what is in force and where it comes from.

    Secrets are not shown, nor what a file of a secret holds. Names that are nearly
    those of settings are named.
    """
    found = list(_in_force(read_settings()))
    if as_json:
        click.echo(json.dumps(found))
        return
    width = max(len(line["name"]) for line in found)
    for line in found:
        click.echo(f"{line['name']:{width}}  {line['source']:11}  {line['value']}")


@config.command()
@click.argument("part", type=click.Choice(["key", "store"]))
def adopt(part: str) -> None:
    """Make the key or the store of arrays that is set now the database's own.

    After a change that was meant. Analysts with the earlier one do not start any more.
    Sessions that name the earlier key end for their parties.
    """
    from analyst_service.installation import ForeignStore, adopt_key, adopt_store
    from analyst_service.monitoring.administrative_acts import Act, log_act
    from clustering_protocols.common.errors import CoterieError

    settings = read_settings()
    with current_database(settings) as database:
        parts = open_parts(settings)
        try:
            if part == "key":
                adopt_key(database, parts.key)
            else:
                adopt_store(database, parts)
        except ForeignStore as error:
            raise click.ClickException(foreign_store(settings, error)) from None
        except CoterieError as error:
            raise click.ClickException(error.detail) from None
        log_act(Act.ADOPTED, operator(), part=part)
    click.echo(f"The {part} that is set now is the database's own.", err=True)


def _in_force(settings: Settings) -> Iterator[dict[str, Any]]:
    from analyst_service.secret_files import named_files, variable

    files = dict(named_files(type(settings).model_fields, os.environ))
    for name, value in settings:
        if file := files.get(name):
            source, shown = "file", str(file)
        else:
            is_set = name in settings.model_fields_set
            source, shown = "environment" if is_set else "default", _mask_secrets(value)
        yield {"name": variable(name), "source": source, "value": shown}


def _mask_secrets(value: Any) -> Any:
    """Return a value as it is printed: numbers as they are, texts without secrets."""
    if isinstance(value, int | float):
        return value
    text = "" if value is None else str(value)
    for secret in _SECRETS:
        text = secret.sub(r"\g<kept>***", text)
    return text
