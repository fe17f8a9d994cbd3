"""The page of keys, for administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Request, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Role
from analyst_service.dashboard.routes import (
    ROOT,
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

router = APIRouter(
    prefix=f"{ROOT}/keys", include_in_schema=False, route_class=PageRoute
)

_T = TypeVar("_T")
_OVERLAP_SECONDS = 86_400
_MOST_LABEL = 200
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("")
def get_keys(request: Request, visitor: VisitorDep, service: ServiceDep) -> Response:
    """Show keys, never their secrets."""
    return _show_keys(request, visitor, service)


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
    return _show_keys(request, visitor, service, (label, made[1]))


@router.post("/{key_id}/rotate")
def post_rotate(
    key_id: KeyId,
    request: Request,
    visitor: VisitorDep,
    service: ServiceDep,
    fields: FormDep,
) -> Response:
    """Give a key a new secret, and show it once; the old one is valid for a day still."""
    del fields
    visitor.caller.require(Role.ADMINISTRATOR)
    seconds = service.settings.key_seconds
    secret = _do(
        service, visitor, lambda auth: auth.rotate(key_id, seconds, _OVERLAP_SECONDS)
    )
    return _show_keys(request, visitor, service, (key_id, secret))


@router.post("/{key_id}/revoke")
def post_revoke(
    key_id: KeyId, visitor: VisitorDep, service: ServiceDep, fields: FormDep
) -> Response:
    """Revoke a key; the visits that began with it end too."""
    del fields
    visitor.caller.require(Role.ADMINISTRATOR)
    if key_id == visitor.caller.credential_id:
        raise Forbidden("This is the key of this visit: revoke it by another one.")
    _do(service, visitor, lambda auth: auth.revoke(key_id))
    return to(f"{ROOT}/keys")


def _show_keys(
    request: Request,
    visitor: Visitor,
    service: Service,
    made: tuple[str, str] = ("", ""),
) -> Response:
    visitor.caller.require(Role.ADMINISTRATOR)
    with service.database.read() as transaction:
        found = AuthService(transaction, service.clock).keys()
        shown = keys_page(found, visitor.caller, service.clock.now(), made)
    return page(request, shown, visitor)


def _do(service: Service, visitor: Visitor, change: Callable[[AuthService], _T]) -> _T:
    def work(transaction: Transaction) -> _T:
        return change(AuthService(transaction, service.clock, by=visitor.actor))

    return service.database.transact(work)
