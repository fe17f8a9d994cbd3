"""Examples, and other additions to the OpenAPI document that the framework generates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.engine.packets import Address, Header, Packet, encode_packet
from clustering_protocols.records import json_form
from clustering_protocols.wire.states import SessionState, SlotState, StopReason

Example = dict[str, Any]

_SESSION: Final = "wards-2027"
_COORDINATOR: Final = "4eeb5aa130e265797d08648904da9dc83a8b5c4ab4accc194355f60e72e98811"
_IDENTITY: Final = "6e92b3084f56115f789cefcea8b02dae458dbcc8d44160dd540ac4be5696ec82"
_KEY: Final = "cc8db0f44c3dcc6d5a447b3d31ce5428e332d11e29ea59b673922e3ab90b0f0a"
_DIGEST: Final = "49bf827d8b0180b26ebe1350e8f516175a901e2145e6d7906246134a5509ead8"
_SIGNATURE: Final = _KEY + _DIGEST
_CODE: Final = "sZlxdjAulTzNI6UY7cvxKp9WasAPV-2n"


_CONTRIBUTION: Final = Packet(
    header=Header(
        address=Address(
            session=_SESSION,
            agreement=_DIGEST,
            slot="south",
            stage="upload",
            round=4,
            attempt=1,
        ),
        record={"kind": "projections", "version": 1, "values": {}},
    ),
    arrays={"rows": np.array([[0.5, -1.25]]), "anchors": np.array([[0.25, 2.0]])},
)

BODIES: Final[dict[str, Example]] = {
    "put_session": {
        "about": {"title": "Wards of two hospitals"},
        "protocol": {"name": "dc", "params": {"n_clusters": 3}},
        "layout": {
            "slots": [
                {"name": "north", "row": 0, "column": 0},
                {"name": "south", "row": 1, "column": 0},
            ]
        },
        "identities": {"coordinator": _COORDINATOR},
    },
    "put_choice": {"n_clusters": 3},
    "cancel_session": {"reason": "Our ethics board asks for another purpose."},
    "post_stopped": {"reason": StopReason.LEFT.value},
    "put_deadline": {"deadline": "2027-03-15T08:00:00Z"},
    "post_invitations": {"slots": ["south"]},
    "post_receiver": {"address": "desk@ward.example"},
    "preview": {"code": _CODE},
    "decline": {
        "code": _CODE,
        "state": SlotState.DECLINED.value,
        "reason": "Our ethics board meets in May.",
    },
    "join": {
        "code": _CODE,
        "member": {
            "slot": "south",
            "n_rows": 412,
            "n_columns": 12,
            "keys": {"x25519": _KEY, "ed25519": _IDENTITY},
            "institution": "South hospital",
            "identity": _IDENTITY,
            "mark": _DIGEST,
            "signature": _SIGNATURE,
        },
        "proof": _SIGNATURE,
    },
    "put_contribution": json_form.of_bytes(encode_packet(_CONTRIBUTION)),
}
"""Example bodies, by operation."""

Document = dict[str, Any]

_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_SCHEME: Final = "bearer"
_REFERENCE: Final = "#/components/schemas/"

_TAGS: Final = {
    "catalogue": "The protocols, and the analyst's key. Needs no credential.",
    "sessions": "Opened, watched and ended by a coordinator.",
    "members": "Invitations and joining. A code takes the place of a credential.",
    "rounds": "A party's work: read a task, answer it.",
    "results": "Labels for a party, a summary for the coordinator.",
    "notices": "A caller's own mail addresses for notices.",
    "health": "For supervisors and monitoring. Needs no credential.",
}
_EVERYBODY: Final = (Problem.TOO_MANY_REQUESTS, Problem.UNAVAILABLE)
_CALLERS: Final = (Problem.UNAUTHENTICATED, Problem.NOT_FOUND)
_SENDERS: Final = (Problem.MALFORMED, Problem.INVALID_PARAMETERS, Problem.TOO_LARGE)


def describe(document: Document, with_caller: frozenset[str]) -> None:
    """Complete a document in place for human readers and code generators.

    document: OpenAPI 3.1, as the framework generated it.
    with_caller: the ids of the operations that need a credential.
    """
    document["servers"] = [{"url": "/", "description": "Where this document is."}]
    document["tags"] = [
        {"name": name, "description": description}
        for name, description in _TAGS.items()
    ]
    components = document["components"]
    components["securitySchemes"] = {
        _SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "A coordinator's or administrator's key, or the token that a "
            "party got when it joined.",
        }
    }
    components["examples"] = {problem.slug: _example_of(problem) for problem in Problem}
    for operation in _operations(document):
        _describe(operation, needs_caller=operation["operationId"] in with_caller)
    _move_defaults_into_descriptions(document)


def _operations(document: Document) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from methods.values()


def _describe(operation: dict[str, Any], *, needs_caller: bool) -> None:
    """Add the credential, an example body and the usual problems of an operation."""
    name = operation["operationId"]
    # the framework's summary is the function's name
    operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
    operation["security"] = [{_SCHEME: []}] if needs_caller else []
    usual = [*_EVERYBODY]
    if needs_caller:
        usual = [*_CALLERS, *usual]
    body = operation.get("requestBody")
    if body is not None:
        usual = [*_SENDERS, *usual]
        if name in BODIES and _JSON in body["content"]:
            body["content"][_JSON]["example"] = BODIES[name]
    problems = operation["responses"]["default"]["content"][_PROBLEM]
    problems["examples"] = {
        problem.slug: {"$ref": f"#/components/examples/{problem.slug}"}
        for problem in usual
    }


def _example_of(problem: Problem) -> dict[str, Any]:
    value: dict[str, Any] = {
        "type": problem.urn,
        "title": problem.title,
        "status": problem.status,
        "detail": "What was expected and what was received.",
        "remedy": problem.remedy,
        "request_id": "739a5a8eddf001ff",
    }
    if problem is Problem.SESSION_OVER:
        over, reason = SessionState.CANCELLED.value, Problem.CANCELLED.slug
        value |= {"state": over, "reason": reason}
    return {"summary": problem.title, "value": value}


# Defaults


def _move_defaults_into_descriptions(document: Document) -> None:
    """Move the defaults of request bodies from the keyword into the description.

    Generated clients always send a field that has a default. Responses do contain such
    fields, but requests must omit them: terms hold only what differs from the defaults.
    """
    schemas = document["components"]["schemas"]
    requests = _find_reachable(
        (o.get("requestBody") for o in _operations(document)), schemas
    )
    responses = _find_reachable(
        (o["responses"] for o in _operations(document)), schemas
    )
    for name in requests - responses:
        for field in schemas[name].get("properties", {}).values():
            if "default" in field:
                value = json.dumps(field.pop("default"), ensure_ascii=False)
                description = field.get("description", "")
                field["description"] = f"{description} Default: {value}.".lstrip()


def _find_reachable(roots: Iterable[Any], schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that roots refer to, directly or indirectly."""
    reachable: set[str] = set()
    pending = [name for root in roots for name in _references(root)]
    while pending:
        name = pending.pop()
        if name not in reachable and name in schemas:
            reachable.add(name)
            pending.extend(_references(schemas[name]))
    return reachable


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(_REFERENCE)
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
