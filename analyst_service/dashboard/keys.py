"""The page of keys, for administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Path, Request, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Role
from analyst_service.dashboard.form_answers import FormAnswer, answer_for, say_on_page
from analyst_service.dashboard.routes import (
    ROOT,
    FormCheck,
    FormDep,
    PageRoute,
    VisitorDep,
    page,
    to,
)
from analyst_service.dashboard.service import Visitor
from analyst_service.dashboard.views import keys_page
from analyst_service.process_context import Service
from analyst_service.requests.deps import ServiceDep
from clustering_protocols.common.errors import Forbidden, InvalidParameters

_KEYS: Final = f"{ROOT}/keys"
router = APIRouter(prefix=_KEYS, include_in_schema=False, route_class=PageRoute)

_T = TypeVar("_T")
_OVERLAP_SECONDS = 86_400
_MOST_LABEL = 200
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("")
def get_keys(request: Request, visitor: VisitorDep, service: ServiceDep) -> Response:
    """Show keys, never their secrets."""
    visitor.caller.require(Role.ADMINISTRATOR)
    with service.database.read() as transaction:
        found = AuthService(transaction, service.clock).keys()
        made = answer_for(request) or FormAnswer(page=_KEYS)
        shown = keys_page(
            found, visitor.caller, service.clock.now(), (made.made_for, made.made)
        )
    return page(request, shown, visitor)


@router.post("")
def post_key(
    request: Request, visitor: VisitorDep, service: ServiceDep, fields: FormDep
) -> Response:
    """Make a key, and show its secret once."""
    visitor.caller.require(Role.ADMINISTRATOR)
    label, role = fields.get("label", "").strip(), fields.get("role", "")
    if role not in {Role.ADMINISTRATOR, Role.COORDINATOR}:
        raise InvalidParameters("coordinator or administrator.", field="role")
    if not 0 < len(label) <= _MOST_LABEL or not label.isprintable():
        raise InvalidParameters("say for whom the key is, in one line.", field="label")
    seconds = service.settings.key_seconds
    made = _do(
        service, visitor, lambda auth: auth.create_key(Role(role), label, seconds)
    )
    return _say_secret(request, label, made[1])


@router.post("/{key_id}/rotate", dependencies=[FormCheck])
def post_rotate(
    key_id: KeyId, request: Request, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """Give a key a new secret, and show it once; the old one is valid for a day still."""
    visitor.caller.require(Role.ADMINISTRATOR)
    seconds = service.settings.key_seconds
    secret = _do(
        service, visitor, lambda auth: auth.rotate(key_id, seconds, _OVERLAP_SECONDS)
    )
    return _say_secret(request, key_id, secret)


@router.post("/{key_id}/revoke", dependencies=[FormCheck])
def post_revoke(key_id: KeyId, visitor: VisitorDep, service: ServiceDep) -> Response:
    """Revoke a key; the visits that began with it end too."""
    visitor.caller.require(Role.ADMINISTRATOR)
    if key_id == visitor.caller.credential_id:
        raise Forbidden("This is the key of this visit: revoke it by another one.")
    _do(service, visitor, lambda auth: auth.revoke(key_id))
    return to(_KEYS)


def _say_secret(request: Request, made_for: str, secret: str) -> Response:
    """Return the way to the page of keys, which shows a secret this once."""
    answer = FormAnswer(page=_KEYS, made_for=made_for, made=secret)
    return say_on_page(request, answer)


def _do(service: Service, visitor: Visitor, change: Callable[[AuthService], _T]) -> _T:
    def work(transaction: Transaction) -> _T:
        return change(AuthService(transaction, service.clock, by=visitor.actor))

    return service.database.transact(work)
