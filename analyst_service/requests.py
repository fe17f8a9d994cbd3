"""Code that the endpoints share: dependencies, JSON bodies, and blobs.

An endpoint begins its own transaction and ends it before it returns. A dependency would
keep the transaction until the response, and end it in a second thread of the
framework's pool. Under load all threads might be waiting for a connection: a deadlock.
All writes use Database.transact, so a 2xx response means that they are committed.

JSON is parsed and validated by the endpoint in a thread, never in the event loop, which
serves all clients. The validator holds the interpreter lock, so it stops at the first
error in a sequence: its work must not grow with the number of errors. JSON that parsers
interpret differently, for example with duplicate names, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from fastapi import Body, Depends, Path, Request, Response
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from analyst_service.credentials import Caller, CredentialRefused, authenticate
from analyst_service.logs import current_request_context
from analyst_service.middleware import PoolPlace, client_address
from analyst_service.process_context import Service
from clustering_protocols.common.errors import Malformed, NotFound, Unauthenticated
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.common.values import convert_validation_error
from clustering_protocols.records import codec


class StrictModel(BaseModel):
    """Base class of models for JSON bodies, which refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


MAX_NAMES: Final = 64  # per JSON object; every model has less than half as many

_M = TypeVar("_M", bound=BaseModel)
_SEQUENCES = frozenset({"list", "tuple", "set", "frozenset"})


class JsonRequest(Request):
    """A request whose JSON body is passed to the endpoint as unparsed bytes."""

    async def json(self) -> Any:
        """Return the body as bytes that are marked as JSON."""
        return _JsonBytes(await self.body())


class _JsonBytes(bytes):
    """Bytes that were sent as JSON."""


class UnparsedBody(Generic[_M]):
    """A JSON body that has not been parsed yet; OpenAPI shows the model of its content."""

    def __init__(self, model: type[_M], text: bytes) -> None:
        self._model = model
        self._text = text

    def read(self) -> _M:
        """Parse and validate the body in the calling thread, which may take a while.

        Raises Malformed if the body is not valid JSON, and InvalidParameters for the
        first rule of the model that it breaks.
        """
        try:
            value = codec.load_object(self._text.decode(), MAX_NAMES)
            read: _M = _build_validator(self._model).validate_python(value)
        except UnicodeDecodeError:
            raise Malformed("The body is not UTF-8.") from None
        except ValidationError as error:
            raise convert_validation_error(error) from None
        return read

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept any JSON, and show the model in the OpenAPI document."""
        (model,) = get_args(source)

        def accept_json(content: Any) -> UnparsedBody[_M]:
            if not isinstance(content, _JsonBytes):
                raise ValueError("Expected Content-Type application/json")  # noqa: TRY004  pydantic reports ValueErrors alone
            return cls(model, content)

        return core_schema.no_info_plain_validator_function(
            accept_json, json_schema_input_schema=handler.generate_schema(model)
        )


Posted = Annotated[UnparsedBody[_M], Body()]


@cache
def _build_validator(model: type[BaseModel]) -> SchemaValidator:
    """Build a validator for the model that stops at the first error in a sequence."""
    schema = _make_fail_fast(TypeAdapter(model).core_schema)
    # The prebuilt validators of nested models would not fail fast.
    return SchemaValidator(schema, _use_prebuilt=False)


def _make_fail_fast(schema: Any) -> Any:
    """Return the core schema with ``fail_fast`` set for all sequences in it."""
    if isinstance(schema, list):
        return [_make_fail_fast(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {
        name: part if name in {"metadata", "default"} else _make_fail_fast(part)
        for name, part in schema.items()
    }
    kind = changed.get("type")  # a dict if the model has a field named "type"
    is_sequence = isinstance(kind, str) and kind in _SEQUENCES
    return {**changed, "fail_fast": True} if is_sequence else changed


_PIECE_BYTES: Final = 1 << 18  # larger files are read by threads and sent in pieces
ARRAYS: Final[dict[str, Any]] = {
    "content": {codec.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
}
"""Encoded arrays as the body of a request or response, in the OpenAPI document."""


def build_blob_response(service: Service, digest: str) -> Response:
    """Return a response with a blob; raise NotFound if the blob has been removed."""
    try:
        path = service.blobs.local_file(digest)
    except KeyError:
        raise NotFound("It was removed when its session ended.") from None
    if path.stat().st_size > _PIECE_BYTES:
        return FileResponse(path, media_type=codec.MEDIA_TYPE)
    return Response(path.read_bytes(), media_type=codec.MEDIA_TYPE)


SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


# These dependencies are `async` although they await nothing, because the framework would
# run ordinary functions in threads, which costs more than the functions themselves.
async def _get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_get_service)]


async def _get_caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # see AdmittingRoute
    return caller


CallerDep = Annotated[Caller, Depends(_get_caller)]


class AdmittingRoute(APIRoute):
    """A route that authenticates and rate-limits the caller before it reads the body.

    Without this the framework would read and validate the body first. If the endpoint
    has no caller parameter, requests are limited by their client address.
    """

    @property
    def needs_caller(self) -> bool:
        """Whether the endpoint requires a credential."""
        return any(part.call is _get_caller for part in self.dependant.dependencies)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that admits a request and leaves its JSON body unparsed."""
        handle = super().get_route_handler()
        is_open = not self.needs_caller

        async def admit_and_handle(request: Request) -> Response:
            if is_open:
                _count_by_address(request)
            else:
                caller = await _authenticate_request(request)
                PoolPlace.from_scope(request.scope).set_sender(caller.credential_id)
                request.state.caller = caller
            return await handle(JsonRequest(request.scope, request.receive))

        return admit_and_handle


async def _authenticate_request(request: Request) -> Caller:
    service: Service = request.app.state.service
    header = request.headers.get("authorization")
    try:
        caller = await service.authenticating.submit(
            lambda headers: service.database.query(authenticate, headers), header
        )
    except Unauthenticated as error:
        if isinstance(error, CredentialRefused):
            current_request_context().caller = error.credential_id  # for the log
        _count_by_address(request)
        raise
    current_request_context().caller = caller.credential_id
    service.count_request(caller.credential_id)
    return caller


def _count_by_address(request: Request) -> None:
    service: Service = request.app.state.service
    service.rates.take_token(client_address(request.scope), service.clock.now())
