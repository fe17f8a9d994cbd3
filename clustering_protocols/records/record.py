"""Records: the common form of everything that is sent or stored.

A record is a frozen pydantic model whose fields are JSON values and declared arrays.
Tasks, contributions, contents of envelopes, results, the analyst's state between
rounds, and the entries of a party's memory are records. Sender and receiver check a
record in the same way when they build it. The repr of a record, which may appear in
logs, shows no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import Buffer

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidArray,
    Malformed,
    VersionMismatch,
)
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import Spec

_MOST_ROWS: Final = 5
_MOST_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableTable:
    """A table of text; its first column contains the names of the rows."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def _table(name: str, array: NDArray[Any]) -> ReadableTable:
    whole = np.atleast_2d(array.T).T
    part = whole[:_MOST_ROWS, :_MOST_COLUMNS]
    n_rows, n_columns = whole.shape
    note = "" if whole.shape == part.shape else f", of which {len(part)} are shown"
    return ReadableTable(
        caption=f"{name}: {n_rows:,} × {n_columns:,} numbers{note}",
        columns=("row", *(str(column + 1) for column in range(part.shape[1]))),
        rows=[
            (str(number), *(f"{value:.4g}" for value in row.tolist()))
            for number, row in enumerate(part, start=1)
        ],
    )


Reach = Literal["readable", "hidden", "agreement"]
REACHES: Final[tuple[Reach, ...]] = get_args(Reach)
"""From the most readers to the fewest."""


class Record(BaseModel):
    """Base class of all messages, states and memory entries.

    kind: the name on the wire, which is unique within a stage.
    version: raised whenever the meaning of a field changes; records with another
        version are refused.
    reach: who can read a record that a party sends. ``readable``: its receiver.
        ``hidden``: nobody, unless it is combined with the records of other parties.
        ``agreement``: the record only serves to agree, for example on keys.
    meaning: a sentence about a record that a party sends, for the person who approves
        it.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,  # deferred, because a process uses only a few of these classes
    )

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    reach: ClassVar[Reach] = "readable"
    meaning: ClassVar[str] = ""
    _specs: ClassVar[dict[str, Spec]]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the declarations of the array fields."""
        super().__pydantic_init_subclass__(**kwargs)
        cls._specs = {
            name: next(item for item in field.metadata if isinstance(item, Spec))
            for name, field in cls.model_fields.items()
            if any(isinstance(item, Spec) for item in field.metadata)
        }

    @model_validator(mode="after")
    def _check_symbols(self) -> Self:
        self._check_sizes({})
        return self

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the array fields by name."""
        return {name: getattr(self, name) for name in self._specs}

    @property
    def values(self) -> dict[str, Any]:
        """Return all fields that are not arrays, as JSON values."""
        return self.model_dump(mode="json", exclude=set(self._specs))

    @property
    def tables(self) -> tuple[ReadableTable, ...]:
        """Return the first rows of the arrays as tables, for a person to read."""
        return tuple(
            _table(name, array) for name, array in self.arrays.items() if array.size > 0
        )

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced; the copy is checked again."""
        return type(self).model_validate(dict(self) | changes)

    def require(self, dims: Mapping[str, int]) -> None:
        """Raise :class:`InvalidArray` unless axes with these symbols have these sizes."""
        try:
            self._check_sizes(dims)
        except PydanticCustomError as error:
            raise InvalidArray(f"{self.kind}: {error.message()}.") from None

    def _check_sizes(self, dims: Mapping[str, int]) -> None:
        """Raise if a symbol has two sizes, or another size than in ``dims``."""
        sizes = dict(dims)
        for name, spec in self._specs.items():
            for symbol, size in zip(spec.shape, getattr(self, name).shape, strict=True):
                expected = symbol if isinstance(symbol, int) else sizes.get(symbol)
                if expected is not None and expected != size:
                    raise PydanticCustomError(
                        "invalid_array",
                        f"{name} has {size} for {symbol}, expected {expected}",
                    )
                if isinstance(symbol, str):
                    sizes[symbol] = size

    def header(self) -> codec.Header:
        """Return the header: the record's kind and version, and its JSON values."""
        return {"kind": self.kind, "version": self.version, "values": self.values}

    def encode(self, **replacements: codec.JoinedBytes) -> bytes:
        """Return the bytes of this record, with its version.

        replacements: bytes to write in place of the uint8 arrays of these names.
        """
        return codec.encode(self.header(), {**self.arrays, **replacements})

    def pieces(self) -> codec.JoinedBytes:
        """Return the bytes of :meth:`encode` in pieces, without copying the arrays."""
        return codec.JoinedBytes(tuple(codec.pieces(self.header(), self.arrays)))

    @classmethod
    def decode(cls, buffer: Buffer) -> Self:
        """Read a record from a buffer that :meth:`encode` wrote."""
        header, arrays = codec.decode(buffer)
        if set(header) != {"kind", "version", "values"}:
            raise Malformed("A record's header must have kind, version and values.")
        return cls.parse(header, arrays)

    @classmethod
    def parse(cls, header: Mapping[str, Any], arrays: codec.Arrays) -> Self:
        """Build the record from a decoded header and its arrays.

        Raises VersionMismatch if the version differs; Malformed if the kind differs, or
        a value is missing, unknown or of a wrong type; InvalidArray if an array does
        not match its declaration.
        """
        if header.get("kind") != cls.kind:
            raise Malformed(
                f"Expected a message of kind {cls.kind!r}, received another."
            )
        version = header.get("version")
        if type(version) is not int or version != cls.version:
            raise VersionMismatch(f"This release reads {cls.kind!r} in v{cls.version}.")
        values = header.get("values")
        if not isinstance(values, dict) or set(values) & set(arrays):
            raise Malformed(f"{cls.kind!r} needs an object of values.")
        try:
            return cls.model_validate({**values, **arrays})
        except ValidationError as error:
            raise _explain(cls.kind, error, set(cls._specs) | set(arrays)) from None

    @classmethod
    def narrow(cls, record: Record) -> Self:
        """Return the record if it is of this class; otherwise raise :class:`Malformed`."""
        if not isinstance(record, cls):
            raise Malformed(f"Expected {cls.kind!r}, received {record.kind!r}.")
        return record

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return f"<{type(self).__name__} {shapes}>"

    __str__ = __repr__
    # records are compared by identity, because == on arrays gives no single bool
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _explain(kind: str, error: ValidationError, arrays: set[str]) -> CoterieError:
    """Return an error that describes the first finding, without the invalid value."""
    finding = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in finding["loc"])
    about_array = finding["type"] == "invalid_array" or field in arrays
    problem = InvalidArray if about_array else Malformed
    return problem(f"{kind}{f' {field!r}' if field else ''}: {finding['msg']}.")
