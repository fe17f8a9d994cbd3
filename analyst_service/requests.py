"""Shared code of endpoints: the service, the caller, JSON bodies, forms of arrays.

An endpoint opens its own transaction and ends it before it returns. A dependency would
hold it until the response and end it in a second thread of the framework's pool, whose
threads may all be waiting for its connection: a deadlock under load. Writes go through
Database.transact, so that a 2xx response means that they are committed.

JSON is parsed and validated by the endpoint, in a thread, and never in the event loop,
which serves everybody. The validator holds the interpreter's lock, so it stops at the
first mistake in a sequence: its work must not grow with the number of mistakes. JSON that
parsers interpret differently, for example with repeated names, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args

from fastapi import Body, Depends, Path, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from analyst_service.credentials import Caller, CredentialRefused, authenticate
from analyst_service.logs import current_request
from analyst_service.middleware import PoolPlace, client_address
from analyst_service.process_context import Service
from clustering_protocols.common.errors import (
    Malformed,
    NotFound,
    TooLarge,
    Unauthenticated,
)
from clustering_protocols.common.limits import JSON_BYTES, NAME_PATTERN
from clustering_protocols.common.values import convert_validation_error
from clustering_protocols.records import codec, json_form


class Form(BaseModel):
    """A part of JSON; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


MAX_NAMES: Final = 64  # in one JSON object; every model has fewer than half

_M = TypeVar("_M", bound=BaseModel)
_SEQUENCES = frozenset({"list", "tuple", "set", "frozenset"})


class JsonRequest(Request):
    """A request whose JSON the framework hands to the endpoint as bytes."""

    async def json(self) -> Any:
        """Return the bytes of the body, marked as JSON."""
        return _JsonBytes(await self.body())


class _JsonBytes(bytes):
    """Bytes that came as JSON."""


class UnreadBody(Generic[_M]):
    """A body that is not parsed yet; OpenAPI shows the model that it should hold."""

    def __init__(self, model: type[_M], text: bytes) -> None:
        self._model = model
        self._text = text

    def read(self) -> _M:
        """Parse the body; to be called in a thread, because it may take a while.

        Raises Malformed, InvalidParameters: naming the first broken rule.
        """
        try:
            value = codec.load_object(self._text.decode(), MAX_NAMES)
            read: _M = _validator(self._model).validate_python(value)
        except UnicodeDecodeError:
            raise Malformed("The body is not UTF-8.") from None
        except ValidationError as error:
            raise convert_validation_error(error) from None
        return read

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept any JSON; show the model in the OpenAPI document."""
        (model,) = get_args(source)

        def accept(content: Any) -> UnreadBody[_M]:
            if not isinstance(content, _JsonBytes):
                raise ValueError("Expected Content-Type application/json")  # noqa: TRY004  pydantic reports ValueErrors alone
            return cls(model, content)

        return core_schema.no_info_plain_validator_function(
            accept, json_schema_input_schema=handler.generate_schema(model)
        )


Posted = Annotated[UnreadBody[_M], Body()]


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    """Return the model's validator, which stops at the first mistake of a sequence."""
    schema = _fail_fast(TypeAdapter(model).core_schema)
    # the prebuilt validators of nested models do not fail fast
    return SchemaValidator(schema, _use_prebuilt=False)


def _fail_fast(schema: Any) -> Any:
    """Return a core schema whose sequences stop at the first wrong item."""
    if isinstance(schema, list):
        return [_fail_fast(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {
        name: part if name in {"metadata", "default"} else _fail_fast(part)
        for name, part in schema.items()
    }
    kind = changed.get("type")  # a dict, if it is a field with the name "type"
    is_sequence = isinstance(kind, str) and kind in _SEQUENCES
    return {**changed, "fail_fast": True} if is_sequence else changed


class ArrayForm(Form):
    """One array as JSON."""

    dtype: Literal["F64", "F32", "I64", "I32", "U64", "U8"]
    shape: list[Annotated[int, Field(ge=0)]]
    data: list[float] | str = Field(
        description="Numbers row by row; for U8 and U64, base64 of little-endian bytes."
    )


class ArraysForm(Form):
    """Header and arrays as JSON."""

    header: dict[str, Any] = Field(description="What it is, and where it belongs.")
    arrays: dict[str, ArrayForm]


_PIECE_BYTES: Final = 1 << 18  # a larger file is sent in pieces, read by threads
_BINARY = {codec.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
RESPONSE: Final[dict[str, Any]] = {"model": ArraysForm, "content": _BINARY}
REQUEST: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        **_BINARY,
        json_form.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ArraysForm"}},
    },
}


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip()


def send_blob(service: Service, digest: str, headers: Mapping[str, str]) -> Response:
    """Return a response with a blob, in the form that the request's headers ask for.

    Raises NotFound if the blob was removed meanwhile.
    Raises TooLarge if it exceeds the limit of JSON.
    """
    try:
        path = service.blobs.file(digest)
    except KeyError:
        raise NotFound("It was removed when its session ended.") from None
    size = path.stat().st_size
    if not _asks_for_json(headers) and size > _PIECE_BYTES:
        return FileResponse(path, media_type=codec.MEDIA_TYPE)
    if size > JSON_BYTES:
        raise TooLarge(
            f"{size} bytes; as JSON at most {JSON_BYTES}. Use the binary form: "
            f"'Accept: {codec.MEDIA_TYPE}'."
        )
    return send_bytes(path.read_bytes(), headers)


def send_bytes(content: bytes, headers: Mapping[str, str]) -> Response:
    """Return a response with arrays, in the form that the request's headers ask for."""
    if _asks_for_json(headers):
        return JSONResponse(json_form.of_bytes(content))
    return Response(content, media_type=codec.MEDIA_TYPE)


def _asks_for_json(headers: Mapping[str, str]) -> bool:
    accepted = {
        part.partition(";")[0].strip() for part in headers.get("accept", "").split(",")
    }
    return json_form.MEDIA_TYPE in accepted and codec.MEDIA_TYPE not in accepted


SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


# `async` although nothing is awaited: the framework would run other functions in threads,
# which costs more than the function.
async def _service(request: Request) -> Service:
    return service_of(request)


def service_of(request: Request) -> Service:
    """Return the service that answers a request."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # see AdmittingRoute
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]


class AdmittingRoute(APIRoute):
    """A route that authenticates and counts the caller before it reads the body.

    The framework alone would read and check the body first. If the endpoint has no
    caller parameter, the request is counted by its address.
    """

    @property
    def needs_caller(self) -> bool:
        """Return whether the endpoint asks for a credential."""
        return any(part.call is _caller for part in self.dependant.dependencies)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler for admitted requests, whose JSON is left unread."""
        handle = super().get_route_handler()
        is_open = not self.needs_caller

        async def admit(request: Request) -> Response:
            if is_open:
                _count_by_address(request)
            else:
                caller = await _authenticate(request)
                PoolPlace.from_scope(request.scope).set_sender(caller.credential_id)
                request.state.caller = caller
            return await handle(JsonRequest(request.scope, request.receive))

        return admit


async def _authenticate(request: Request) -> Caller:
    service = service_of(request)
    header = request.headers.get("authorization")
    try:
        caller = await service.authenticating.submit(
            lambda headers: service.database.query(authenticate, headers), header
        )
    except Unauthenticated as error:
        if isinstance(error, CredentialRefused):
            current_request().caller = error.credential_id  # if it was valid once
        _count_by_address(request)
        raise
    current_request().caller = caller.credential_id
    service.count(caller.credential_id)
    return caller


def _count_by_address(request: Request) -> None:
    service = service_of(request)
    service.rates.take(client_address(request.scope), service.clock.now())
