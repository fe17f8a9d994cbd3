"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from clustering_protocols import registry
from clustering_protocols.contract import Params
from clustering_protocols.errors import InvalidParameters

url_option = click.option(
    "--url", envvar="COTERIE_URL", required=True, help="Of the analyst. [COTERIE_URL]"
)
key_option = click.option(
    "--key",
    envvar="COTERIE_KEY",
    required=True,
    help="A coordinator's key. [COTERIE_KEY]",
)
home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="COTERIE_HOME",
    help="Where secrets and memory are kept. [COTERIE_HOME; ~/.coterie]",
)
ca_option = click.option(
    "--ca-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="PEM file of your certificate authority.",
)
http_option = click.option(
    "--allow-http", is_flag=True, help="Accept plain http beyond this machine."
)
entropy_option = click.option(
    "--entropy-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="32 bytes (hex) instead of the operating system's, to repeat a run.",
)
param_option = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the protocol; may be given several times.",
)


def read_entropy(path: Path | None) -> bytes | None:
    """Return the 32 bytes in a file of 64 hex digits."""
    if path is None:
        return None
    try:
        entropy = bytes.fromhex(path.read_text().strip())
    except ValueError:
        entropy = b""
    if len(entropy) != 32:
        raise InvalidParameters("The entropy file must hold 64 hex digits.")
    return entropy


def read_params(protocol: str, given: tuple[str, ...]) -> Params:
    """Return parameters from NAME=VALUE texts."""
    return registry.parse_params(protocol, read_values(given))


def read_values(given: tuple[str, ...]) -> dict[str, Any]:
    """Return values from NAME=VALUE texts; a dot reaches into a part.

    Values are JSON where they parse as JSON, texts otherwise.
    """
    values: dict[str, Any] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found:
            raise InvalidParameters(f"{text!r} is not NAME=VALUE.")
        *path, last = name.strip().split(".")
        place = values
        for part in path:
            place = place.setdefault(part, {})
        place[last] = _value(value)
    return values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
