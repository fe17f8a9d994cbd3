"""JSON bodies: read in a thread, bounded, and without what readers understand differently.

The event loop serves everybody, so that nobody's body may be parsed or checked in it. It
hands on the bytes; the endpoint, which runs in a thread, reads them. A thread alone is
not enough: the validator holds the interpreter's lock, so that it is kept from work
that grows with the number of mistakes.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from fastapi import Body, Request
from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from clustering_protocols.common.errors import Malformed
from clustering_protocols.common.validation_messages import invalid_parameters
from clustering_protocols.records import codec

MAX_NAMES: Final = 64  # in one object; no model of ours has half as many

_M = TypeVar("_M", bound=BaseModel)
_SEQUENCES = frozenset({"list", "tuple", "set", "frozenset"})


class JsonRequest(Request):
    """A request whose JSON is left unread for the endpoint."""

    async def json(self) -> Any:
        """Return the bytes of the body, marked as JSON."""
        return _Text(await self.body())


class _Text(bytes):
    """Bytes that came as JSON."""


class Unread(Generic[_M]):
    """A body that nobody has parsed yet; documented as the model that it should be."""

    def __init__(self, model: type[_M], text: bytes) -> None:
        self._model = model
        self._text = text

    def read(self) -> _M:
        """Return the model in the body; to be called in a thread.

        Raises Malformed, InvalidParameters: naming the first rule that is broken.
        """
        try:
            value = codec.load_object(self._text.decode(), MAX_NAMES)
            read: _M = _validator(self._model).validate_python(value)
        except UnicodeDecodeError:
            raise Malformed("The body is not UTF-8.") from None
        except ValidationError as error:
            raise invalid_parameters(error) from None
        return read

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Take what came as JSON, whatever it is; show the model in the document."""
        (model,) = get_args(source)

        def take(content: Any) -> Unread[_M]:
            if not isinstance(content, _Text):
                raise ValueError("Expected Content-Type application/json")  # noqa: TRY004  pydantic reports ValueErrors alone
            return cls(model, content)

        return core_schema.no_info_plain_validator_function(
            take, json_schema_input_schema=handler.generate_schema(model)
        )


Posted = Annotated[Unread[_M], Body()]


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    """Return the model's validator, which leaves a sequence at its first mistake."""
    schema = _impatient(TypeAdapter(model).core_schema)
    # the validators that nested models bring along are patient
    return SchemaValidator(schema, _use_prebuilt=False)


def _impatient(schema: Any) -> Any:
    """Return a core schema whose sequences stop at the first item that is wrong."""
    if isinstance(schema, list):
        return [_impatient(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: part if name in {"metadata", "default"} else _impatient(part)
        for name, part in schema.items()
    }
    named = kept.get("type")  # or a field that is called so, with a schema of its own
    is_sequence = isinstance(named, str) and named in _SEQUENCES
    return {**kept, "fail_fast": True} if is_sequence else kept
