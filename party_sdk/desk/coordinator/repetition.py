"""A session again: last quarter's terms, as they were or with changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.schema import Field, Role
from clustering_protocols.terms.terms import Terms
from coterie_pages.models.desk_coordinator import RepetitionPage, SlotLine
from coterie_pages.models.fields import FormField, Option
from coterie_pages.models.frame import Banner
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.repetition import Changes, like
from party_sdk.desk.coordinator.context import SESSIONS, pass_coordinator, session_in
from party_sdk.desk.coordinator.session_opening import decide, drawn_before, hidden_of
from party_sdk.desk.responses import Form, form_of, render_page

_ROLE: Final = "role."
_ROLES: Final = {
    "cluster": "clustered",
    "describe": "described in profiles alone",
    "leave-out": "left out",
}


@pass_coordinator
def get_repeat(request: Request, coordinator: Coordinator) -> Response:
    """Show the form: a title, who does not take part again, and what else changes."""
    opened = session_in(request, coordinator)
    said = {"title": opened.terms.title}
    return _page(request, opened.id, opened.terms, said)


@pass_coordinator
def post_repeat(request: Request, coordinator: Coordinator) -> Response:
    """Show the terms of the new session, and open it once they were shown."""
    opened = session_in(request, coordinator)
    form, terms = form_of(request), opened.terms
    said = {name: values[0].strip() for name, values in form.fields.items()}
    if form.one("do") not in {"review", "open"}:
        return _page(request, opened.id, terms, said, form.all("without"))
    try:
        asked: dict[str, Any] = like(
            terms, form.all("without"), _read_changes(terms, form)
        )
        title = said.get("title", "")
        asked["about"] = asked["about"].model_copy(update={"title": title})
        drawn = coordinator.draw_up(**asked, **drawn_before(form))
    except InvalidParameters as error:
        notice = Banner(text=error.detail, good=False)
        ticked = form.all("without")
        return _page(request, opened.id, terms, said, ticked, notice)
    hidden = tuple(hidden_of(form.fields, drawn))
    action = f"{SESSIONS}/{opened.id}/repeat"
    return decide(request, coordinator, drawn, hidden, None, action=action)


def _read_changes(terms: Terms, form: Form) -> Changes:
    """Return what the form changes."""
    number, protocol = form.one("n_clusters").strip(), form.one("protocol").strip()
    params: dict[str, Any] = {}
    if number and number != _number_of_clusters(terms):
        params["n_clusters"] = int(number) if number.isdigit() else number
    roles: dict[str, Role] = {}
    for place, field in enumerate(_fields_of(terms)):
        chosen = form.one(f"{_ROLE}{place}")
        if chosen in get_args(Role) and chosen != field.role:
            roles[field.name] = cast("Role", chosen)
    return Changes(
        params=params,
        protocol=protocol if protocol and protocol != terms.protocol.name else None,
        roles=roles,
    )


def _number_of_clusters(terms: Terms) -> str:
    """Return the number of clusters, or the numbers, as the form shows them."""
    if terms.evaluation is not None:
        return ", ".join(map(str, terms.evaluation.n_clusters))
    number = getattr(session_terms.check_terms(terms), "n_clusters", None)
    return "" if number is None else str(number)


def _fields_of(terms: Terms) -> list[Field]:
    return [field for schema in terms.dictionary or () for field in schema.fields]


def _method_fields(terms: Terms, said: Mapping[str, str]) -> Iterator[FormField]:
    yield FormField(
        name="n_clusters",
        label="Number of clusters",
        hint="One number, or several: 2..7.",
        value=said.get("n_clusters", _number_of_clusters(terms)),
    )
    yield FormField(
        name="protocol",
        label="Method",
        hint="Parameters that both methods have are kept.",
        kind="choice",
        required=True,
        options=tuple(
            Option(value=name, text=f"{name}: {known.title}")
            for name, known in catalogue.catalogue().items()
            if known.methods or name == terms.protocol.name
        ),
        value=said.get("protocol", terms.protocol.name),
    )


def _role_fields(terms: Terms, said: Mapping[str, str]) -> Iterator[FormField]:
    for number, field in enumerate(_fields_of(terms)):
        name = f"{_ROLE}{number}"
        yield FormField(
            name=name,
            label=field.title or field.name,
            kind="choice",
            required=True,
            options=tuple(Option(value=v, text=t) for v, t in _ROLES.items()),
            value=said.get(name, field.role),
        )


def _page(
    request: Request,
    session: str,
    terms: Terms,
    said: Mapping[str, str],
    without: Any = (),
    notice: Banner | None = None,
) -> Response:
    title = said.get("title", "")
    page = RepetitionPage(
        session=session,
        title=FormField(name="title", label="Title", required=True, value=title),
        method=tuple(_method_fields(terms, said)),
        roles=tuple(_role_fields(terms, said)),
        slots=tuple(
            SlotLine(
                name=slot.name,
                title=slot.title,
                row=str(slot.row + 1),
                column=str(slot.column + 1),
            )
            for slot in terms.layout.slots
        ),
        without=tuple(without),
    )
    return render_page(request, page, notice=notice)
