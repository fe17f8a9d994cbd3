"""The page of calls: what each is given and returns, read from the files of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from benchmarks.vectors.form import Layer, SessionFile, VectorCase

_HEAD: Final = """# Calls

Written by `python -m benchmarks.spec` from the files of [vectors/](vectors). Section 14 says what each call does. A field that some cases lack has `?`.

| call | input | output |
|---|---|---|
"""
_TYPES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
}


def write_calls(
    layers: Mapping[str, Layer], sessions: Mapping[str, SessionFile]
) -> str:
    """Return the page: a row for each call, in the order of the files."""
    cases: dict[str, list[VectorCase]] = {}
    for case in _cases(layers, sessions):
        cases.setdefault(case.call, []).append(case)
    rows = [
        f"| `{call}` | {_describe(case.input for case in found)} | "
        f"{_describe(case.output for case in found if case.output is not None)} |\n"
        for call, found in cases.items()
    ]
    return _HEAD + "".join(rows)


def _cases(
    layers: Mapping[str, Layer], sessions: Mapping[str, SessionFile]
) -> Iterator[VectorCase]:
    for layer in layers.values():
        yield from layer.cases
    for file in sessions.values():
        for session in file.sessions:
            yield from session.steps


def _describe(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the names and types of the members of objects; `?` if some lack it."""
    every = list(objects)
    names = dict.fromkeys(name for each in every for name in each)
    return ", ".join(_describe_member(name, every) for name in names)


def _describe_member(name: str, objects: list[Mapping[str, Any]]) -> str:
    found = [each[name] for each in objects if name in each]
    types = " or ".join(dict.fromkeys(_TYPES[type(value)] for value in found))
    return f"`{name}`{'' if len(found) == len(objects) else '?'} {types}"
