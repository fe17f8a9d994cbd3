"""What endpoints share: the parts of the process, the caller, bodies and forms of arrays.

Endpoints get no transaction: an endpoint opens its own and ends it before it returns. The
framework takes a thread of its pool for the endpoint and another one for its answer. A
connection that is kept from one to the other waits for a thread, while the threads wait
for connections. Who writes asks Database.transact: a client that reads 2xx may rely on the
commit.

JSON is read in a thread, bounded, and without what readers understand differently. The
event loop serves everybody, so that nobody's body may be parsed or checked in it. It
hands on the bytes; the endpoint, which runs in a thread, reads them. A thread alone is
not enough: the validator holds the interpreter's lock, so that it is kept from work
that grows with the number of mistakes.
"""

from __future__ import annotations

import asyncio
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
from analyst_service.middleware import Visit, address
from analyst_service.process_context import Service
from clustering_protocols.common.errors import (
    Malformed,
    NotFound,
    TooLarge,
    Unauthenticated,
)
from clustering_protocols.common.limits import JSON_BYTES, NAME_PATTERN
from clustering_protocols.common.values import invalid_parameters
from clustering_protocols.records import codec, json_form

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


class ArrayForm(BaseModel):
    """One array as JSON."""

    model_config = ConfigDict(extra="forbid")

    dtype: Literal["F64", "F32", "I64", "I32", "U64", "U8"]
    shape: list[Annotated[int, Field(ge=0)]]
    data: list[float] | str = Field(
        description="Numbers row by row; of U8 and U64 base64 of little-endian bytes."
    )


class ArraysForm(BaseModel):
    """Header and arrays as JSON."""

    model_config = ConfigDict(extra="forbid")

    header: dict[str, Any] = Field(description="What it is, and where it belongs.")
    arrays: dict[str, ArrayForm]


_PIECE_BYTES: Final = 1 << 18  # more is read in pieces, by threads
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


def send_blob(service: Service, digest: str, asked: Mapping[str, str]) -> Response:
    """Return the response that sends a blob, in the form that a request asks for.

    Raises NotFound if it has been removed since the caller asked for it.
    Raises TooLarge if it is over the limit of JSON.
    """
    try:
        path = service.blobs.file(digest)
    except KeyError:
        raise NotFound("It was removed when its session ended.") from None
    size = path.stat().st_size
    accepted = {
        part.partition(";")[0].strip() for part in asked.get("accept", "").split(",")
    }
    if json_form.MEDIA_TYPE not in accepted or codec.MEDIA_TYPE in accepted:
        if size > _PIECE_BYTES:
            return FileResponse(path, media_type=codec.MEDIA_TYPE)
        return Response(path.read_bytes(), media_type=codec.MEDIA_TYPE)
    if size > JSON_BYTES:
        raise TooLarge(
            f"{size} bytes; as JSON at most {JSON_BYTES}. Use the binary form: "
            f"'Accept: {codec.MEDIA_TYPE}'."
        )
    return JSONResponse(json_form.of_bytes(path.read_bytes()))


async def send_task(
    service: Service, digest: str, asked: Mapping[str, str]
) -> Response:
    """Return the same of a blob that may have to be fetched first, without blocking.

    A file of this machine is read at once: a thread would cost more.
    """
    if not service.settings.blob_store:
        return send_blob(service, digest, asked)
    return await asyncio.to_thread(send_blob, service, digest, asked)


SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


# `async` where nothing waits: the framework runs other functions in threads, and the
# way there and back costs more than such a function.
async def _service(request: Request) -> Service:
    return parts_of(request)


def parts_of(request: Request) -> Service:
    """Return the parts of the process that answers a request."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # see AdmittingRoute
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]


class AdmittingRoute(APIRoute):
    """A route that knows who asks before a byte of the body is read.

    The framework would read and check the body first. Where the endpoint asks for a
    caller, the credential is looked up; elsewhere the request is a stranger's.
    """

    @property
    def needs_caller(self) -> bool:
        """Return whether the endpoint asks for a credential."""
        return any(part.call is _caller for part in self.dependant.dependencies)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, over requests that are admitted and leave JSON unread."""
        handle = super().get_route_handler()
        is_open = not self.needs_caller

        async def admit(request: Request) -> Response:
            if is_open:
                _count_stranger(request)
            else:
                caller = await _authenticate(request)
                Visit.of(request.scope).name(caller.credential_id)
                request.state.caller = caller
            return await handle(JsonRequest(request.scope, request.receive))

        return admit


async def _authenticate(request: Request) -> Caller:
    service = parts_of(request)
    shown = request.headers.get("authorization")
    try:
        caller = await service.authenticating.do(
            lambda headers: service.database.query(authenticate, headers), shown
        )
    except Unauthenticated as error:
        if isinstance(error, CredentialRefused):
            current_request().caller = error.credential_id  # of what counted once
        _count_stranger(request)
        raise
    current_request().caller = caller.credential_id
    service.count(caller.credential_id)
    return caller


def _count_stranger(request: Request) -> None:
    """Count a request of somebody who shows no credential, by the address."""
    service = parts_of(request)
    service.rates.take(address(request.scope), service.clock.now())
