"""Secrets from files: ``NAME_FILE`` may name a file that contains the secret ``NAME``.

This works for secret settings and for the credentials of an object store.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from pydantic.fields import FieldInfo

PREFIX: Final = "COTERIE_"
SECRET: Final[dict[str, JsonValue]] = {"secret": True}
"""Field metadata that marks a setting as secret: its value may come from a file."""

_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
_MOST_BYTES: Final = 1 << 16


def variable_name(field: str) -> str:
    """Return the name of a setting's environment variable."""
    return f"{PREFIX}{field.upper()}"


def file_variable_name(field: str) -> str:
    """Return the name of the variable that names the file of a secret setting."""
    return f"{variable_name(field)}_FILE"


def secret_setting_names(fields: Mapping[str, FieldInfo]) -> list[str]:
    """Return the names of all secret settings."""
    return [
        name
        for name, field in fields.items()
        if isinstance(field.json_schema_extra, dict)
        and field.json_schema_extra.get("secret")
    ]


def find_secret_files(
    fields: Mapping[str, FieldInfo], environment: Mapping[str, str]
) -> Iterator[tuple[str, Path]]:
    """Yield each secret setting that comes from a file, with the path of the file."""
    for name in secret_setting_names(fields):
        if path := environment.get(file_variable_name(name)):
            yield name, Path(path)


def read_secrets(
    fields: Mapping[str, FieldInfo],
    values: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return the values of the secret settings that come from files.

    values: the settings that do not come from files.

    Raises ValueError if a setting has both a value and a file, or if its file does not
    hold a single line. The message names the file but does not quote it.
    """
    secrets = {}
    for name, path in find_secret_files(fields, environment):
        if values.get(name):
            raise ValueError(
                f"{variable_name(name)} and {file_variable_name(name)} are both set: give one"
            )
        secrets[name] = read_secret(file_variable_name(name), path)
    return secrets


def find_credential_files(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield each variable that names a credential file of an object store, and the path."""
    for name in _CREDENTIALS:
        if path := environment.get(f"{name}_FILE"):
            yield f"{name}_FILE", Path(path)


def is_world_readable(path: Path) -> bool:
    """Return whether a file exists and is readable by all accounts of this machine."""
    return path.exists() and bool(path.stat().st_mode & stat.S_IROTH)


def read_secret(name: str, path: Path) -> str:
    """Return the only line of a variable's file; raise ValueError if there is none."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode().strip()
    except OSError as error:
        raise ValueError(
            f"{name}: the file {path} cannot be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: the file {path} holds no text") from None
    if not text or not text.isprintable():
        raise ValueError(f"{name}: the file {path} holds no single line of text")
    return text
