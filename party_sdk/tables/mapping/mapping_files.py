"""Mappings as files: read, written, and known again by a keyed digest."""

from __future__ import annotations

import json
import os
import tomllib
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import did_you_mean, in_words
from party_sdk.tables.mapping.model import VERSION, TableMapping

MOST_BYTES: Final = 4 << 20
"""Bytes of the largest file of a mapping."""

_OPEN: Final = frozenset({"levels", "values"})
"""Parts whose names are cells: sentences stop before them."""
_KEYS: Final = (
    "from", "levels", "convert", "factor", "offset", "missing",
    "decimal", "thousands", "dates", "limits", "version", "file", "columns", "leave_out", "lines", "values",
)  # fmt: skip


def read_mapping(path: Path) -> TableMapping:
    """Return the mapping in a file.

    Raises InvalidData if there is none, or it contradicts itself.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        raise InvalidData(f"There is no mapping {path.name!r}.") from None
    return parse_mapping(content, path.name)


def load_mapping(
    given: TableMapping | str | os.PathLike[str] | None,
) -> TableMapping | None:
    """Return a mapping from what a caller names it by: itself, or its file."""
    if given is None or isinstance(given, TableMapping):
        return given
    return read_mapping(Path(given))


def parse_mapping(content: bytes, name: str) -> TableMapping:
    """Return the mapping that a file's content says.

    name: of the file, for sentences.

    Raises InvalidData as :func:`read_mapping`.
    """
    if len(content) > MOST_BYTES:
        raise InvalidData(f"{name!r} is no mapping: it has more than 4 MiB.")
    try:
        said = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidData(f"{name!r} is no mapping: it is not in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidData(f"{name!r} is no TOML: {error}.") from None
    except (RecursionError, ValueError):  # brackets in brackets, huge numbers
        raise InvalidData(f"{name!r} is no TOML that can be read.") from None
    return _validate(said, name)


def parse_json(text: str, name: str) -> TableMapping:
    """Return the mapping that a line of JSON says, with the names of a file.

    Raises InvalidData as :func:`read_mapping`.
    """
    if len(text) > MOST_BYTES:
        raise InvalidData(f"{name!r} is no mapping: it has more than 4 MiB.")
    try:
        said = json.loads(text)
    except (RecursionError, ValueError):
        said = None
    if not isinstance(said, dict):
        raise InvalidData(f"{name!r} is no mapping.")
    return _validate({"version": VERSION, **said}, name)


def write_mapping(mapping: TableMapping) -> bytes:
    """Return a mapping as a file has it; what says nothing is not written."""
    import tomli_w

    said = mapping.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    return tomli_w.dumps({"version": VERSION, **said}).encode()


def mapping_digest(mapping: TableMapping, key: bytes) -> str:
    """Return a digest (hex) by which a mapping is known again.

    key: 32 secret bytes: who has not got them cannot try levels out.
    """
    said = mapping.model_dump(mode="json", exclude_defaults=True)
    content = json.dumps(said, sort_keys=True, ensure_ascii=False).encode()
    return blake2b(content, key=key, digest_size=32).hexdigest()


def _validate(said: dict[str, Any], name: str) -> TableMapping:
    version = said.get("version")
    if type(version) is not int:
        raise InvalidData(
            f"{name!r} is no mapping: its first line is version = {VERSION}."
        )
    if version > VERSION:
        raise InvalidData(
            f"{name!r} is a mapping of version {version}: this release reads {VERSION}."
        )
    try:
        return TableMapping.model_validate(said, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidData(f"{name!r} is no mapping: {_explain(error)}.") from None


def _explain(error: ValidationError) -> str:
    """Return the first finding with its place, without any cell."""
    finding = error.errors(include_input=False, include_url=False)[0]
    place: list[str] = []
    for part in finding["loc"]:
        if isinstance(part, str) and "[" not in part:
            place.append(part)
        if part in _OPEN:
            break
    hint = ""
    if finding["type"] == "extra_forbidden":
        hint = did_you_mean(place[-1], _KEYS).replace(" Did you mean", ": do you mean")
    where = f"{'.'.join(place)}: " if place else ""
    return f"{where}{in_words(finding)}{hint}".rstrip("?")
