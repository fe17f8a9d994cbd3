"""Vectors of spec/vectors: calls with their inputs, and what must come of each.

A call has an output, or it must fail with a problem. Bytes are hex, or base64 where the
field says so; words and residues, which a float cannot hold exactly, are decimal text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import Malformed

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
SESSIONS: Final = "sessions"
SCHEMA: Final = "schema.json"
_SLUGS: Final = {problem.slug for problem in Problem}


Level = Literal["A", "B", "C", "D", "E"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class VectorCase(_Part):
    """A call with what must come of it.

    tolerance: relative to the largest number of an array; 0 where all bits count.
    """

    name: str = Field(description="What this case is about.")
    section: str = Field(description="Section of the specification.")
    call: str = Field(description="What is called: see conformance.md.")
    input: dict[str, Any] = Field(description="Arguments of the call.")
    output: dict[str, Any] | None = Field(
        default=None, description="What the call returns."
    )
    problem: str = Field(default="", description="With which problem it must fail.")
    tolerance: float = Field(
        default=0.0,
        ge=0,
        description="How far float64 numbers may be off, of the largest number.",
    )

    turned: list[str] = Field(
        default=[],
        description="Arrays of a contribution that a party may turn together: inner "
        "products of all their rows are compared.",
    )
    units: int = Field(
        default=0,
        ge=0,
        description="How far words of a masked share may be off, modulo 2^64; the tag "
        "behind them is then not compared.",
    )
    chosen: list[str] = Field(
        default=[],
        description="Kinds of sealed records whose arrays are a party's own choice: "
        "types, shapes and bounds are compared.",
    )

    @model_validator(mode="after")
    def _check_outcome(self) -> Self:
        """Refuse a case with two outcomes or none, or with an unknown problem."""
        if (self.output is None) != bool(self.problem):
            raise ValueError("a case has an output or a problem")
        if self.problem and self.problem not in _SLUGS:
            raise ValueError(f"{self.problem!r} is no problem")
        return self


class Layer(_Part):
    """A file of cases that need no session."""

    vectors: Literal[1] = 1
    layer: str
    about: str
    cases: list[VectorCase]


class Refusal(_Part):
    """A session in which one message is another: the party must stop there."""

    name: str
    after: int = Field(ge=0, description="How many steps come before it, unchanged.")
    step: VectorCase


class RecordedSession(_Part):
    """A session as one party knows it: `init`, each `step`, `conclude`.

    receivers: private X25519 keys (hex) of those to whom the party seals envelopes.
    """

    name: str
    level: Level = Field(description="The level of conformance that needs it.")
    receivers: dict[str, str]
    steps: list[VectorCase]
    refusals: list[Refusal]


class SessionFile(_Part):
    """A file of recorded sessions of one protocol."""

    vectors: Literal[1] = 1
    protocol: str
    about: str
    sessions: list[RecordedSession]


_M = TypeVar("_M", Layer, SessionFile)


def read_layers(folder: Path) -> dict[str, Layer]:
    """Return the layers of a folder by name; see :func:`_read` for errors."""
    paths = sorted(path for path in folder.glob("*.json") if path.name != SCHEMA)
    return {path.stem: read_layer(path) for path in paths}


def read_layer(path: Path) -> Layer:
    """Return the layer of a file; see :func:`_read` for errors."""
    return _read(Layer, path)


def read_sessions(folder: Path) -> dict[str, SessionFile]:
    """Return the files of sessions of a folder by protocol; see :func:`_read`."""
    paths = sorted((folder / SESSIONS).glob("*.json"))
    return {path.stem: _read(SessionFile, path) for path in paths}


def _read(model: type[_M], path: Path) -> _M:
    """Return the content of a file; raise :class:`Malformed` if it holds no vectors."""
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise Malformed(
            f"{path.name} holds no vectors: {place}: {first['msg']}."
        ) from None


def write_schema() -> str:
    """Return the JSON Schema of all files of vectors."""
    layer, session = Layer.model_json_schema(), SessionFile.model_json_schema()
    definitions = {**layer.pop("$defs"), **session.pop("$defs")}
    definitions |= {"Layer": layer, "SessionFile": session}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Vectors of the wire of Coterie",
        "anyOf": [{"$ref": "#/$defs/Layer"}, {"$ref": "#/$defs/SessionFile"}],
        "$defs": definitions,
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def format_file(content: Layer | SessionFile) -> str:
    """Return the text of a file: one line for each case."""
    text = content.model_dump(mode="json", exclude_defaults=True)
    text = {"vectors": content.vectors, **text}
    return _write_lines(text, 0) + "\n"


def _write_lines(value: Any, depth: int) -> str:
    """Return JSON: an object with an input is one line, all around it is indented."""
    space, inner = "\n" + " " * depth, "\n" + " " * (depth + 1)
    if isinstance(value, dict) and "input" not in value:
        lines = [
            f"{json.dumps(k)}: {_write_lines(v, depth + 1)}" for k, v in value.items()
        ]
        return "{" + inner + ("," + inner).join(lines) + space + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [_write_lines(each, depth + 1) for each in value]
        return "[" + inner + ("," + inner).join(lines) + space + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
