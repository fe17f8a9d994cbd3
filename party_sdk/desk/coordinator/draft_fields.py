"""From a draft of a session to the screens of the form that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from coterie_pages.desk_models import ColumnGroup, FieldGroup, SlotLine
from coterie_pages.form_fields import fields_of
from coterie_pages.formatting import figure
from coterie_pages.models import FormField, KeysChoice, Option, Screen, field_id
from party_sdk.advice import layout_of
from party_sdk.desk.coordinator.context import parse_number
from party_sdk.desk.coordinator.drafts import (
    DAY,
    LINKING,
    MATCH_KEYS,
    PARAM,
    SCREENS,
    SPLITS,
    Draft,
    screen_of,
)
from party_sdk.desk.dictionary_drafts import ROLES, TYPES, TableDraft
from party_sdk.desk.tables.named_file import files_in
from party_sdk.home.clock import now
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.policy import describe_quota

if TYPE_CHECKING:
    from party_sdk.tables.report import KeyPreview
    from party_sdk.tables.variables import Variable

_USUAL_PARTIES: Final = 3
_MORE_PLACES: Final = 3
_MORE_ROWS: Final = 4
_MOST_COLUMNS: Final = 50
_SEVERAL: Final = (
    "Several, such as 2..8 or 2, 3, 5, make a run of each, of which one is chosen."
)
PROPOSE: Final = "keys"
"""What a form asks for, to have keys proposed of the table that it names."""
_PEOPLE: Final = "people"


def page_of(draft: Draft, known: TrustedInstitutions, number: int) -> Screen:
    """Return a screen of the form of a draft, with what is wrong beside each field."""
    asked = (_what_for, _who, _variables)[number - 1](draft)
    errors = (
        (field_id(name), why)
        for name, why in draft.wrong.items()
        if screen_of(name) == number
    )
    usual = {"more": (), "slots": (), "wrong_slots": "", "keys": None, "columns": ()}
    return Screen(
        "desk/new.html.j2",
        number=number,
        title=SCREENS[number - 1],
        known=tuple(Option(value=name, text=name) for name in sorted(known.read())),
        roles=ROLES,
        types=TYPES,
        hidden=tuple(draft.hidden(number)),
        errors=tuple(errors),
        earlier=draft.one("from"),
        **(usual | asked),
    )


def _what_for(draft: Draft) -> dict[str, Any]:
    words = list(_request_fields(draft, "words"))
    protocol = catalogue.protocol(draft.protocol)
    fields = [_several(each) for each in _parameters(draft) if not _links(each)]
    needed = [each for each in fields if each.required]
    groups = _groups([each for each in fields if not each.required])
    deep = FieldGroup(
        title=f"Parameters of the method: {len(fields) - len(needed)}, all with defaults",
        groups=tuple(groups),
        note="Leave a field blank to use its default.",
    )
    more = FieldGroup(title="Legal basis, contact and roles", fields=tuple(words[2:]))
    method = _method(draft, protocol.summary)
    runs = _request_fields(draft, "runs")
    shown = (*words[:2], method, *needed, *runs)
    return {"fields": shown, "more": (more, *[deep] * bool(groups))}


def _who(draft: Draft) -> dict[str, Any]:
    places = draft.places() or _places(draft)
    if draft.one("do") == "places":
        rows = [int(place.row) for place in places if place.row.isdigit()]
        numbers = range(
            max(rows, default=0) + 1, max(rows, default=0) + 1 + _MORE_PLACES
        )
        places += [SlotLine(name=f"r{row}c1", row=str(row)) for row in numbers]
    split = _split(places)
    links = [each for each in _parameters(draft) if _links(each)]
    keys = next((each for each in links if each.name == MATCH_KEYS), None)
    limits = tuple(_request_fields(draft, "limits"))
    more = [FieldGroup(title="Deadlines, and fewest rows", fields=limits)]
    if split.value == "patients":
        keys = None
    elif rest := tuple(each for each in links if each is not keys):
        more.append(FieldGroup(title=f"Linking rows: {len(rest)}", fields=rest))
    return {
        "fields": (split,),
        "more": tuple(more),
        "slots": tuple(places),
        "wrong_slots": draft.wrong.get("slots", ""),
        "keys": None if keys is None else choose_keys(draft, keys),
    }


def _variables(draft: Draft) -> dict[str, Any]:
    return {
        "columns": tuple(_columns(draft)),
        "fields": tuple(_request_fields(draft, "gaps", "results")),
    }


def _parameters(draft: Draft) -> tuple[FormField, ...]:
    schema = catalogue.protocol(draft.protocol).params.model_json_schema()
    wrong = {name.removeprefix(PARAM): why for name, why in draft.wrong.items()}
    return fields_of(schema, draft.parameters, wrong, prefix=PARAM)


def _links(field: FormField) -> bool:
    return field.name.startswith(LINKING)


def _several(field: FormField) -> FormField:
    if field.name != f"{PARAM}n_clusters":
        return field
    return field.model_copy(update={"label": "Number of clusters", "hint": _SEVERAL})


def _groups(fields: Sequence[FormField]) -> Iterator[FieldGroup]:
    """Yield parameters that need no value, by what they are about."""
    for title in GROUPS:
        if about := tuple(each for each in fields if each.group == title):
            yield FieldGroup(title=title, fields=about)


def _split(places: Sequence[SlotLine]) -> FormField:
    """Return the question how data are split, answered as the places stand."""
    counted = tuple(str(number) for number in range(1, 1 + len(places)))
    ones = ("1",) * len(places)
    stand = (tuple(p.row for p in places), tuple(p.column for p in places))
    ways = {(counted, ones): "patients", (ones, counted): "variables"}
    return FormField(
        name="split",
        label="How the data are split",
        kind="choice",
        options=tuple(Option(value=value, text=text) for value, text in SPLITS.items()),
        required=True,
        value=ways.get(stand, "both"),
        reloads="split",
    )


def _method(draft: Draft, summary: str) -> FormField:
    return FormField(
        name="protocol",
        label="Method",
        hint=summary,
        kind="choice",
        options=tuple(
            Option(value=name, text=f"{name}: {each.title}")
            for name, each in catalogue.catalogue().items()
            if not each.for_tests
        ),
        required=True,
        value=draft.protocol,
        reloads="method",
    )


def _request_fields(draft: Draft, *groups: Group) -> Iterator[FormField]:
    """Yield the fields of a request that stand together."""
    week = now() + timedelta(days=7)
    for each in request_fields():
        name, caption = each.form_name, each.caption
        if caption.group in groups:
            limits = f"From {caption.least}" if caption.least is not None else ""
            if caption.days and caption.most is not None:
                limits = f"Up to {caption.most // DAY:,} days"
            yield FormField(
                name=name,
                label=caption.label,
                hint=(caption.hint or each.info.description or "").format(week=week),
                kind="choice" if caption.choices else "text",
                options=tuple(
                    Option(value=value, text=text.format(figure(value)))
                    for value, text in caption.choices.items()
                ),
                limits=limits,
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


def _columns(draft: Draft) -> Iterator[ColumnGroup]:
    places = draft.places() or _places(draft)
    groups = {place.column for place in places if place.column.isdigit()}
    for number in range(1, 1 + min(_MOST_COLUMNS, max(1, len(groups)))):
        table = TableDraft.of(draft.form, number, draft.tables)
        notes: dict[int, str] = {}
        rows: tuple[Variable, ...] = ()
        try:
            table = table.with_ids()
            found = table.draft()
        except CoterieError as error:
            draft.wrong.setdefault(f"table.{number}", error.detail)
        else:
            rows = found.variables
            notes = {
                row: found.reasons[each.name]
                for row, each in enumerate(rows, 1)
                if each.name in found.reasons
            }
        place = f"variable.{number}."
        yield ColumnGroup(
            number=number,
            fields=tuple(_table_fields(draft, number, table)),
            elsewhere=FieldGroup(
                title="A file elsewhere, or a dictionary that you have",
                fields=tuple(_elsewhere(draft, number)),
            ),
            variables=(*rows, *_blank_rows(draft, number, table)),
            listed=table.key,
            notes=notes,
            wrong={
                int(name.removeprefix(place)): why
                for name, why in draft.wrong.items()
                if name.startswith(place)
            },
        )


def _blank_rows(draft: Draft, number: int, table: TableDraft) -> Sequence[Variable]:
    """Return rows to type variables into, where no file has them."""
    from party_sdk.tables.variables import Variable

    if table.path is not None or draft.one(f"dictionary.{number}"):
        return ()
    more = not table.rows or draft.one("do") == "rows"
    return [Variable(name="")] * (_MORE_ROWS * more)


def _table_fields(draft: Draft, number: int, table: TableDraft) -> Iterator[FormField]:
    chosen = draft.one(f"table.{number}")
    names = dict.fromkeys(each.name for each in files_in(draft.tables))
    wrong = draft.wrong.get(f"table.{number}", "")
    yield FormField(
        name=f"table.{number}",
        label="From a table of your own",
        hint=f"A file in {draft.tables}. Names and types of its columns are read; no "
        "value of a row.",
        kind="choice",
        options=tuple(
            Option(value=name, text=name)
            for name in dict.fromkeys([*names, *[chosen] * bool(chosen)])
        ),
        usual="no table: type the variables",
        value=chosen,
        wrong=wrong,
        reloads="variables",
    )
    if table.path is not None:
        yield FormField(
            name=f"ids.{number}",
            label="Columns that name rows",
            hint="They are left out. Several with commas between.",
            value=", ".join(table.ids),
        )
        yield FormField(
            name=f"levels.{number}",
            label="Write the words of text columns as levels",
            hint="They come from your rows, and everybody reads them. Otherwise such "
            "columns are left out, unless you type their levels.",
            kind="tick",
            value="yes" if table.levels else "",
            reloads="variables",
        )


def _elsewhere(draft: Draft, number: int) -> Iterator[FormField]:
    for name, label, hint in (
        ("elsewhere", "The path of a table", "Variables are drafted from it."),
        ("dictionary", "The path of a dictionary", "Its file (JSON), as it stands."),
    ):
        yield FormField(
            name=f"{name}.{number}",
            label=label,
            hint=hint,
            value=draft.one(f"{name}.{number}"),
            wrong=draft.wrong.get(f"{name}.{number}", ""),
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
        if draft.one(_PEOPLE):
            keys, lines = _try(draft, keys)
        elif draft.one("do") == PROPOSE:
            raise InvalidData("Name a table of your own: keys are proposed from it.")
    except CoterieError as error:
        wrong = error.detail
    except ValueError as error:
        unread = f"{error}."
    return KeysChoice(
        table=FormField(
            name=_PEOPLE,
            label="A table of your own with names and dates of birth",
            hint="Keys are proposed from its columns, and tried on its rows. Nothing of "
            "it goes into the terms but the keys.",
            value=draft.one(_PEOPLE),
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
    from party_sdk.tables import ReadOptions
    from party_sdk.tables.linkage import preview_of, propose_match_keys

    path = draft.path(draft.one(_PEOPLE))
    found: Sequence[KeyPreview]
    if draft.one("do") == PROPOSE:
        found = [
            each for each in propose_match_keys(path, ReadOptions()) if each.serves
        ]
        return [each.key for each in found], tuple(found)
    return keys, tuple(preview_of(path, ReadOptions(), keys))
