"""Which form of arrays a request brings or asks for: bytes, or JSON for small ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Response
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from analyst_service.process_context import Service
from clustering_protocols.common.errors import NotFound, TooLarge
from clustering_protocols.common.limits import JSON_BYTES
from clustering_protocols.records import codec, json_form


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
    if not _wants_json(asked):
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


def _wants_json(headers: Mapping[str, str]) -> bool:
    """Return whether a request accepts JSON and does not name the binary form."""
    accepted = {part.partition(";")[0].strip() for part in _accept(headers)}
    return json_form.MEDIA_TYPE in accepted and codec.MEDIA_TYPE not in accepted


def _accept(headers: Mapping[str, str]) -> list[str]:
    return headers.get("accept", "").split(",")
