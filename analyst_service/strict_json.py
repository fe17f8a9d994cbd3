"""JSON bodies: read in a thread, bounded, and without what readers understand differently.

The event loop serves everybody, so that nobody's body may be parsed or checked in it. It
hands on the bytes; the endpoint, which runs in a thread, reads them. A thread alone is
not enough: the validator holds the interpreter's lock, so that it is kept from work
that grows with the number of mistakes.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Final, Generic, NoReturn, TypeVar, get_args

from fastapi import Body, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

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

        Raises
        ------
        RequestValidationError
            Naming the first rule that is broken.
        """
        try:
            return _read(self._model, self._text)
        except RecursionError:
            raise _unreadable("it is nested too deeply") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise _unreadable(getattr(error, "msg", "it is not UTF-8")) from None
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise RequestValidationError(
                [{**each, "loc": ("body", *each["loc"])} for each in found]
            ) from None

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


def _read(model: type[_M], text: bytes) -> _M:
    value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    read: _M = _validator(model).validate_python(value)
    return read


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
    return {**kept, "fail_fast": True} if kept.get("type") in _SEQUENCES else kept


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_NAMES:
        raise json.JSONDecodeError(f"more than {MAX_NAMES} names in one object", "", 0)
    found = dict(pairs)
    if len(found) < len(pairs):
        raise json.JSONDecodeError("a name stands twice in one object", "", 0)
    return found


def _refuse(constant: str) -> NoReturn:
    del constant  # what came is not told
    raise json.JSONDecodeError("a number that is not finite is not JSON", "", 0)


def _unreadable(why: str) -> RequestValidationError:
    return RequestValidationError(
        [{"type": "json_invalid", "loc": ("body",), "msg": f"JSON decode error: {why}"}]
    )
