"""From a draft of a session to the form that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from clustering_protocols import catalogue
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.contract.parameters import GROUPS
from clustering_protocols.terms.captions import Group
from clustering_protocols.terms.request_fields import request_fields
from clustering_protocols.terms.terms import Layout
from coterie_pages.desk_models import ColumnsLine, FieldGroup, NewSession, SlotLine
from coterie_pages.form_fields import fields_of
from coterie_pages.formatting import figure
from coterie_pages.models import FormField, KeysChoice, Option
from party_sdk.advice import layout_of
from party_sdk.desk.coordinator.context import parse_number
from party_sdk.desk.coordinator.drafts import MATCH_KEYS, PARAM, SPLITS, Draft
from party_sdk.desk.dictionary_drafts import ROLES, TYPES, TableDraft
from party_sdk.home.clock import now
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.policy import describe_quota

if TYPE_CHECKING:
    from party_sdk.desk.coordinator.drafts import Draft
    from party_sdk.tables.report import KeyPreview

_USUAL_PARTIES: Final = 3
_MOST_COLUMNS: Final = 50
_SEVERAL: Final = (
    "Several, such as 2..8 or 2, 3, 5, make a run of each, of which one is chosen."
)
PROPOSE: Final = "keys"
"""What a form asks for, to have keys proposed of the table that it names."""
_TABLE: Final = "people"


def page_of(draft: Draft, known: TrustedInstitutions) -> NewSession:
    """Return the form of a draft, with what is wrong beside each field."""
    protocol = catalogue.protocol(draft.protocol)
    schema = protocol.params.model_json_schema()
    wrong = {name.removeprefix(PARAM): why for name, why in draft.wrong.items()}
    fields = [
        _several(each)
        for each in fields_of(schema, draft.parameters, wrong, prefix=PARAM)
    ]
    places = draft.places() or _places(draft)
    keys = next((each for each in fields if each.name == MATCH_KEYS), None)
    fields = [each for each in fields if each is not keys]
    return NewSession(
        method=_method(draft),
        title=protocol.title,
        summary=protocol.summary,
        about=tuple(_request_fields(draft, "words")),
        parameters=tuple(each for each in fields if each.required),
        groups=tuple(_groups(each for each in fields if not each.required)),
        runs=tuple(_request_fields(draft, "runs")),
        rest=tuple(_request_fields(draft, "limits", "gaps", "results")),
        keys=None if keys is None else choose_keys(draft, keys),
        split=_split(places),
        slots=tuple(places),
        known=tuple(Option(value=name, text=name) for name in sorted(known.read())),
        wrong_slots=draft.wrong.get("slots", ""),
        columns=tuple(_columns(draft, places)),
        folder=str(draft.tables),
        earlier=draft.one("from"),
    )


def _several(field: FormField) -> FormField:
    if field.name != f"{PARAM}n_clusters":
        return field
    hint = f"{field.hint} {_SEVERAL}".strip()
    return field.model_copy(update={"label": "Number of clusters", "hint": hint})


def _groups(fields: Iterable[FormField]) -> Iterator[FieldGroup]:
    """Yield parameters that need no value, by what they are about."""
    found: dict[str, list[FormField]] = {}
    for each in fields:
        found.setdefault(each.group, []).append(each)
    for title in sorted(found, key=GROUPS.index):
        changed = sum(bool(each.value or each.wrong) for each in found[title])
        yield FieldGroup(title=title, fields=tuple(found[title]), changed=changed)


def _split(places: Sequence[SlotLine]) -> FormField:
    """Return the question how data are split, answered as the places stand."""
    counted = [str(number) for number in range(1, 1 + len(places))]
    ones = ["1"] * len(places)
    ways = {
        (tuple(counted), tuple(ones)): "patients",
        (tuple(ones), tuple(counted)): "variables",
    }
    stand = (tuple(p.row for p in places), tuple(p.column for p in places))
    return FormField(
        name="split",
        label="How the data are split",
        kind="choice",
        options=tuple(Option(value=value, text=text) for value, text in SPLITS.items()),
        required=True,
        value=ways.get(stand, "both"),
    )


def _method(draft: Draft) -> FormField:
    known = catalogue.catalogue()
    return FormField(
        name="protocol",
        label="Method",
        kind="choice",
        options=tuple(
            Option(value=name, text=f"{name}: {each.title}")
            for name, each in known.items()
            if not each.for_tests
        ),
        required=True,
        value=draft.protocol,
    )


def _request_fields(draft: Draft, *groups: Group) -> Iterator[FormField]:
    """Yield the fields of a request that stand together."""
    week = now() + timedelta(days=7)
    for each in request_fields():
        name, caption = each.form_name, each.caption
        if caption.group in groups:
            yield FormField(
                name=name,
                label=caption.label,
                hint=(caption.hint or each.info.description or "").format(week=week),
                kind="choice" if caption.choices else "text",
                options=tuple(
                    Option(value=value, text=text.format(figure(value)))
                    for value, text in caption.choices.items()
                ),
                usual=caption.usual,
                required=name == "title",
                value=draft.one(name),
                wrong=draft.wrong.get(name, ""),
            )


def _places(draft: Draft) -> list[SlotLine]:
    """Return the places with which the form begins: as advice was asked, or a few."""
    layout = Layout.lattice(_USUAL_PARTIES)
    if draft.one("parties") and draft.one("partitioning"):
        try:
            parties = parse_number(draft.one("parties"), "parties", 2)
            partitioning: Any = draft.one("partitioning")
            layout = layout_of(partitioning, parties)
        except InvalidParameters:
            pass  # somebody changed the address: the usual places then
    return [
        SlotLine(
            name=slot.name,
            title=slot.title,
            row=str(slot.row + 1),
            column=str(slot.column + 1),
        )
        for slot in layout.slots
    ]


def _columns(draft: Draft, places: list[SlotLine]) -> Iterator[ColumnsLine]:
    groups = {place.column for place in places if place.column.isdigit()}
    for number in range(1, 1 + min(_MOST_COLUMNS, max(1, len(groups)))):
        drafted = TableDraft.of(draft.form, number, draft.tables).read_variables()
        yield ColumnsLine(
            number=number,
            file=draft.one(f"dictionary.{number}"),
            table=draft.one(f"table.{number}"),
            ids=draft.one(f"ids.{number}"),
            levels=bool(draft.one(f"levels.{number}")),
            variables=drafted.lines,
            roles=ROLES,
            types=TYPES,
            listed=drafted.listed,
            wrong=draft.wrong.get(f"dictionary.{number}", ""),
        )


def choose_keys(draft: Draft, field: FormField) -> KeysChoice:
    """Return the keys of a draft, tried on the table that it names.

    Where the draft asks for it, they are those that the table proposes.

    field: of the parameter.
    """
    keys: Sequence[str] = draft.match_keys
    lines: tuple[KeyPreview, ...] = ()
    wrong, unread = "", field.wrong
    try:
        if draft.one(_TABLE):
            keys, lines = _try(draft, keys)
        elif draft.one("do") == PROPOSE:
            raise InvalidData("Name a table of your own: keys are proposed from it.")
    except CoterieError as error:
        wrong = error.detail
    except ValueError as error:
        unread = f"{error}."
    return KeysChoice(
        table=FormField(
            name=_TABLE,
            label="A table of your own with names and dates of birth",
            hint="Keys are proposed from its columns, and tried on its rows. Nothing of "
            "it goes into the terms but the keys.",
            value=draft.one(_TABLE),
            wrong=wrong,
        ),
        keys=field.model_copy(
            update={
                "kind": "long",
                "hint": f"One a line; the first counts first. {field.hint}",
                "limits": "",
                "usual": "",
                "value": "\n".join(keys),
                "wrong": unread,
            }
        ),
        lines=lines,
        needs=describe_quota(len(keys)),
    )


def _try(
    draft: Draft, keys: Sequence[str]
) -> tuple[Sequence[str], tuple[KeyPreview, ...]]:
    from party_sdk.tables import How
    from party_sdk.tables.linkage import preview_of, propose_match_keys

    path = draft.path(draft.one(_TABLE))
    found: Sequence[KeyPreview]
    if draft.one("do") == PROPOSE:
        found = [each for each in propose_match_keys(path, How()) if each.serves]
        return [each.key for each in found], tuple(found)
    return keys, tuple(preview_of(path, How(), keys))
