"""The two kinds of files that are carried, and what refuses a wrong one.

Each is an array file (:mod:`clustering_protocols.records.codec`) whose header names
session, slot and number, with the SHA-256 of all of it in front. An answer is signed by the
institution that gave it: the connected machine learns its key from the line with which
it joined, and sends nothing that another has signed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any, Final, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    KeyNotAuthentic,
    SessionOver,
)
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records import codec
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.secrecy.identities import Institution, check_signature
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.terms import Name
from party_sdk.analyst_client.requests import PROBLEM_TYPE, raise_problem
from party_sdk.offline.questions import Question

JSON_TYPE: Final = "application/json"
_MAGIC: Final = b"coterie-step-1\n"
_DIGEST_BYTES: Final = 32
_ODD: Final = "This file was changed, or written by another release."

_Method = Annotated[str, Field(pattern=r"^(GET|POST|PUT( [0-9a-f]{64})?)$")]
_Path = Annotated[
    str, Field(pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$", max_length=300)
]
_Status = Annotated[int, Field(ge=100, le=599)]
_MediaType = Annotated[str, Field(pattern=r"^[ -~]*$", max_length=200)]
_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]*$", max_length=256)]
_H = TypeVar("_H", bound="_Header")


class _Header(BaseModel):
    """What both kinds say. Names are parts of paths: nothing else may stand in them."""

    model_config = ConfigDict(strict=True, extra="forbid")

    kind: str
    session: Name
    slot: Name
    number: int = Field(ge=0, lt=1 << 31)


class _TaskHeader(_Header):
    has_joined: bool
    said: list[tuple[_Method, _Path, _Status, _MediaType]] = Field(max_length=16)


class _AnswerHeader(_Header):
    method: _Method
    path: _Path
    media_type: _MediaType
    key: _Hex
    signature: _Hex


class JoinContent(BaseModel):
    """With what a party takes its slot."""

    code: str = Field(repr=False)
    member: Member
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystResponse:
    """A response of the analyst."""

    method: str
    path: str
    status: int
    media_type: str
    body: bytes = field(repr=False)

    @classmethod
    def of(cls, question: Question, said: BaseModel | CoterieError | bytes) -> Self:
        """Return a response: a document, a refusal, or the bytes of arrays."""
        status, media_type, body = _encode_response(said)
        method, path = question
        return cls(
            method=method, path=path, status=status, media_type=media_type, body=body
        )

    @property
    def content(self) -> bytes:
        """Return what it says; raises the problem, where it is one."""
        raise_problem(self.status, self.media_type, self.body)
        return self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """What the analyst said, for the machine without network.

    number: counts from 1, for each party.
    has_joined: whether the slot was taken with what the other machine gave.
    """

    session: str
    slot: str
    number: int
    has_joined: bool
    said: tuple[AnalystResponse, ...] = field(repr=False)

    @property
    def by_question(self) -> dict[Question, AnalystResponse]:
        """Return what the analyst said, by what it was asked."""
        return {(each.method, each.path): each for each in self.said}

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        header = {
            "kind": "task",
            "session": self.session,
            "slot": self.slot,
            "number": self.number,
            "has_joined": self.has_joined,
            "said": [
                [each.method, each.path, each.status, each.media_type]
                for each in self.said
            ],
        }
        return _encode_file(header, [each.body for each in self.said])

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Return the task in a file; :class:`InvalidData` if there is none."""
        fields, bodies = _read(content, "task")
        header = _validate_header(_TaskHeader, fields)
        if len(header.said) != len(bodies):
            raise InvalidData(_ODD)
        said = [
            AnalystResponse(
                method=method,
                path=path,
                status=status,
                media_type=media_type,
                body=body,
            )
            for (method, path, status, media_type), body in zip(
                header.said, bodies, strict=True
            )
        ]
        return cls(
            session=header.session,
            slot=header.slot,
            number=header.number,
            has_joined=header.has_joined,
            said=tuple(said),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFile:
    """What is to be sent for the machine without network.

    number: that of the task which it answers.
    media_type: of the body.
    key, signature: the institution's, and its signature under all the rest.
    """

    session: str
    slot: str
    number: int
    method: str
    path: str
    media_type: str
    body: bytes = field(repr=False)
    key: str = ""
    signature: str = ""

    def to_signed_bytes(self, own: Institution) -> bytes:
        """Return the bytes of the file, signed by the institution that answers."""
        header = {
            "kind": "answer",
            "session": self.session,
            "slot": self.slot,
            "number": self.number,
            "method": self.method,
            "path": self.path,
            "media_type": self.media_type,
            "key": own.key,
            "signature": own.sign(self._signed_content),
        }
        return _encode_file(header, [self.body])

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Return the answer in a file.

        Raises InvalidData if there is none.
        Raises KeyNotAuthentic if it was changed since it was signed.
        """
        fields, bodies = _read(content, "answer")
        header = _validate_header(_AnswerHeader, fields)
        if len(bodies) != 1:
            raise InvalidData(_ODD)
        answer = cls(**header.model_dump(exclude={"kind"}), body=bodies[0])
        try:
            check_signature(answer.key, answer._signed_content, answer.signature)
        except CoterieError:
            raise KeyNotAuthentic(
                "This answer was changed since the other machine signed it."
            ) from None
        return answer

    @property
    def question(self) -> Question:
        """Return what it asks for, as files name it."""
        return self.method, self.path

    @property
    def join_content(self) -> JoinContent:
        """Return with what it takes a slot; :class:`InvalidData` if it has another form."""
        try:
            return JoinContent.model_validate_json(self.body)
        except ValidationError:
            raise InvalidData(_ODD) from None

    @property
    def _signed_content(self) -> bytes:
        place = (self.session, self.slot, str(self.number), self.method, self.path)
        return length_prefixed(
            "coterie/step/1", *place, self.media_type, sha256(self.body).hexdigest()
        )


def _encode_response(said: BaseModel | CoterieError | bytes) -> tuple[int, str, bytes]:
    """Return status, media type and body, as an analyst gives them over HTTP."""
    if isinstance(said, bytes):
        status = HTTPStatus.OK if said else HTTPStatus.NO_CONTENT
        return status, MEDIA_TYPE if said else "", said
    if isinstance(said, BaseModel):
        return HTTPStatus.OK, JSON_TYPE, said.model_dump_json().encode()
    document: dict[str, str | None] = {"type": said.problem.slug, "detail": said.detail}
    if isinstance(said, SessionOver):
        document |= {"state": said.state, "reason": said.reason}
    return said.problem.status, PROBLEM_TYPE, json.dumps(document).encode()


def _validate_header(model: type[_H], fields: Mapping[str, Any]) -> _H:
    """Return the header of a file; :class:`InvalidData` unless it has its form."""
    try:
        return model.model_validate_json(json.dumps(fields))
    except ValidationError:
        raise InvalidData(_ODD) from None


def _encode_file(header: Mapping[str, Any], bodies: list[bytes]) -> bytes:
    arrays = {
        f"body.{number}": np.frombuffer(body, np.uint8)
        for number, body in enumerate(bodies)
    }
    content = codec.encode(header, arrays)
    return _MAGIC + sha256(content).digest() + content


def _read(content: bytes, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    start = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC):
        raise InvalidData("This is no file of 'party step'.")
    if sha256(content[start:]).digest() != content[len(_MAGIC) : start]:
        raise InvalidData("This file was changed or cut off on its way: copy it again.")
    header, arrays = codec.decode(content[start:])
    if header.get("kind") != kind:
        other = {"task": "an answer", "answer": "a task"}[kind]
        raise InvalidData(f"This file holds {other}, not {kind}.")
    names = [f"body.{number}" for number in range(len(arrays))]
    if set(names) != arrays.keys():
        raise InvalidData(_ODD)
    return header, [arrays[name].tobytes() for name in names]
