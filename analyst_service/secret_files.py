"""Secrets from files: the variable ``NAME_FILE`` may name the file of a secret setting.

The same holds for the credentials of an object store.
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
"""Marks a setting whose value may come from a file."""

_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
_MOST_BYTES: Final = 1 << 16


def variable(field: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{field.upper()}"


def file_variable(field: str) -> str:
    """Return the variable that names the file of a secret setting."""
    return f"{variable(field)}_FILE"


def secret_fields(fields: Mapping[str, FieldInfo]) -> list[str]:
    """Return the names of the settings that are secrets."""
    return [
        name
        for name, field in fields.items()
        if isinstance(field.json_schema_extra, dict)
        and field.json_schema_extra.get("secret")
    ]


def named_files(
    fields: Mapping[str, FieldInfo], environment: Mapping[str, str]
) -> Iterator[tuple[str, Path]]:
    """Yield the secret settings that come from a file, each with its file."""
    for name in secret_fields(fields):
        if path := environment.get(file_variable(name)):
            yield name, Path(path)


def read_secrets(
    fields: Mapping[str, FieldInfo],
    values: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return the secret settings that come from files.

    values: the settings without files.

    Raises ValueError if a file cannot be read or is empty, or a setting has both a value
        and a file. The text names the file and quotes nothing of its content.
    """
    secrets = {}
    for name, path in named_files(fields, environment):
        if values.get(name):
            raise ValueError(
                f"{variable(name)} and {file_variable(name)} are both set: give one"
            )
        secrets[name] = read_secret(file_variable(name), path)
    return secrets


def credential_files(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the variables that name credential files of an object store, and the files."""
    for name in _CREDENTIALS:
        if path := environment.get(f"{name}_FILE"):
            yield f"{name}_FILE", Path(path)


def is_open_to_others(path: Path) -> bool:
    """Return whether a file exists that every account of this machine may read."""
    return path.exists() and bool(path.stat().st_mode & stat.S_IROTH)


def read_secret(name: str, path: Path) -> str:
    """Return the line of text in a variable's file; raise ValueError without one."""
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
