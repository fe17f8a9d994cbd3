"""The screens of the form in which a coordinator drafts a new session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

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
from coterie_pages.formatting import name_figure
from coterie_pages.models import FormField, Screen, field_id
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
    screen_number_of,
)
from party_sdk.desk.dictionary_drafts import ROLES, TYPES, TableDraft
from party_sdk.desk.tables.named_file import files_in
from party_sdk.home.clock import now
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.policy import explain_quota
from party_sdk.tables import ReadOptions
from party_sdk.tables.linkage import preview_match_keys, propose_match_keys
from party_sdk.tables.report import KeyPreview
from party_sdk.tables.variables import Variable

_USUAL_PARTIES: Final = 3
_MORE_SLOTS: Final = 3
_MORE_ROWS: Final = 4
_MAX_COLUMN_GROUPS: Final = 50
_SEVERAL: Final = (
    "Of several, such as 2..8 or 2, 3, 5, each gets a run, and one run is chosen."
)
PROPOSE: Final = "keys"
"""The value of the form's button that proposes match keys from a table."""
_PEOPLE: Final = "people"


def build_screen(draft: Draft, trusted: TrustedInstitutions, number: int) -> Screen:
    """Return one screen of a draft's form, with an error message at each invalid field."""
    content = (_purpose_screen, _parties_screen, _variables_screen)[number - 1](draft)
    errors = (
        (field_id(name), why)
        for name, why in draft.wrong.items()
        if screen_number_of(name) == number
    )
    defaults = {"more": (), "slots": (), "wrong_slots": "", "keys": None, "columns": ()}
    return Screen(
        "desk/new.html.j2",
        number=number,
        title=SCREENS[number - 1],
        known=sorted(trusted.keys_by_name()),
        roles=ROLES,
        types=TYPES,
        hidden=tuple(draft.hidden_fields(number)),
        errors=tuple(errors),
        earlier=draft.get("from"),
        **(defaults | content),
    )


def _purpose_screen(draft: Draft) -> dict[str, Any]:
    words = list(_request_fields(draft, "words"))
    protocol = catalogue.protocol(draft.protocol)
    fields = [
        _describe_clusters(field)
        for field in _parameter_fields(draft)
        if not _is_linking(field)
    ]
    required = [field for field in fields if field.required]
    groups = [
        FieldGroup(title=title, fields=members)
        for title in GROUPS
        if (members := tuple(f for f in fields if f.group == title and not f.required))
    ]
    method_group = FieldGroup(
        title=f"Parameters of the method: {len(fields) - len(required)}, all with defaults",
        groups=tuple(groups),
        note="Leave a field blank to use its default.",
    )
    more = FieldGroup(title="Legal basis, contact and roles", fields=tuple(words[2:]))
    method = _method_field(draft, protocol.summary)
    runs = _request_fields(draft, "runs")
    shown_fields = (*words[:2], method, *required, *runs)
    return {"fields": shown_fields, "more": (more, *[method_group] * bool(groups))}


def _parties_screen(draft: Draft) -> dict[str, Any]:
    slots = draft.slots() or _initial_slots(draft)
    split = _split_field(slots)
    if draft.get("do") == "places":
        rows = [int(slot.row) for slot in slots if slot.row.isdigit()]
        numbers = range(
            max(rows, default=0) + 1, max(rows, default=0) + 1 + _MORE_SLOTS
        )
        slots += [SlotLine(row=str(row)) for row in numbers]
    links = [field for field in _parameter_fields(draft) if _is_linking(field)]
    keys = next((field for field in links if field.name == MATCH_KEYS), None)
    limits = tuple(_request_fields(draft, "limits"))
    more = [FieldGroup(title="Deadlines, and minimum rows", fields=limits)]
    if split.value == "patients":
        keys = None
    elif other_links := tuple(field for field in links if field is not keys):
        more.append(
            FieldGroup(title=f"Linking rows: {len(other_links)}", fields=other_links)
        )
    return {
        "fields": (split,),
        "more": tuple(more),
        "slots": tuple(slots),
        "wrong_slots": draft.wrong.get("slots", ""),
        "keys": None if keys is None else build_match_key_content(draft, keys),
    }


def _variables_screen(draft: Draft) -> dict[str, Any]:
    return {
        "columns": tuple(_build_column_groups(draft)),
        "fields": tuple(_request_fields(draft, "gaps", "results")),
    }


def _parameter_fields(draft: Draft) -> tuple[FormField, ...]:
    schema = catalogue.protocol(draft.protocol).params.model_json_schema()
    wrong = {name.removeprefix(PARAM): why for name, why in draft.wrong.items()}
    return fields_of(schema, draft.parameters, wrong, prefix=PARAM)


def _is_linking(field: FormField) -> bool:
    return field.name.startswith(LINKING)


def _describe_clusters(field: FormField) -> FormField:
    if field.name != f"{PARAM}n_clusters":
        return field
    return field.model_copy(update={"label": "Number of clusters", "hint": _SEVERAL})


def _split_field(slots: Sequence[SlotLine]) -> FormField:
    """Return the field for how the data are split, preset to match the slots' positions."""
    numbers = tuple(str(number) for number in range(1, 1 + len(slots)))
    ones = ("1",) * len(slots)
    positions = (tuple(p.row for p in slots), tuple(p.column for p in slots))
    splits = {(numbers, ones): "patients", (ones, numbers): "variables"}
    return FormField(
        name="split",
        label="How the data are split",
        kind="choice",
        options=SPLITS,
        required=True,
        value=splits.get(positions, "both"),
        reloads="split",
    )


def _method_field(draft: Draft, summary: str) -> FormField:
    return FormField(
        name="protocol",
        label="Method",
        hint=summary,
        kind="choice",
        options={
            name: f"{name}: {entry.title}"
            for name, entry in catalogue.catalogue().items()
            if not entry.for_tests
        },
        required=True,
        value=draft.protocol,
        reloads="method",
    )


def _request_fields(draft: Draft, *groups: Group) -> Iterator[FormField]:
    week = now() + timedelta(days=7)
    for request_field in request_fields():
        name, caption = request_field.form_name, request_field.caption
        if caption.group in groups:
            limits = f"From {caption.least}" if caption.least is not None else ""
            if caption.days and caption.most is not None:
                limits = f"Up to {caption.most // DAY:,} days"
            default, choices = caption.default, caption.choices
            if name == "missing" and draft.repeats_preparation:
                choices = {"refuse": default, **choices}
                default = f"as in session {draft.get('from')}"
            yield FormField(
                name=name,
                label=caption.label,
                hint=(caption.hint or request_field.info.description or "").format(
                    week=week
                ),
                kind="choice" if choices else "text",
                options={
                    value: text.format(name_figure(value))
                    for value, text in choices.items()
                },
                limits=limits,
                default=default,
                required=name == "title",
                value=draft.get(name),
                error=draft.wrong.get(name, ""),
            )


def _initial_slots(draft: Draft) -> list[SlotLine]:
    """Return the slots from the advice page, or by default those of three parties."""
    layout = Layout.lattice(_USUAL_PARTIES)
    if draft.get("parties") and draft.get("partitioning"):
        try:
            parties = parse_number(draft.get("parties"), "parties", 2)
            partitioning: Any = draft.get("partitioning")
            layout = layout_of(partitioning, parties)
        except InvalidParameters:
            pass  # the query string was edited by hand
    return [SlotLine.of(slot) for slot in layout.slots]


def _build_column_groups(draft: Draft) -> Iterator[ColumnGroup]:
    slots = draft.slots() or _initial_slots(draft)
    groups = {slot.column for slot in slots if slot.column.isdigit()}
    for number in range(1, 1 + min(_MAX_COLUMN_GROUPS, max(1, len(groups)))):
        table = TableDraft.from_form(draft.form, number, draft.tables)
        notes: dict[int, str] = {}
        rows: tuple[Variable, ...] = ()
        try:
            table = table.with_ids()
            dictionary_draft = table.draft()
        except CoterieError as error:
            draft.wrong.setdefault(f"table.{number}", error.detail)
        else:
            rows = dictionary_draft.variables
            notes = {
                row: dictionary_draft.reasons[variable.name]
                for row, variable in enumerate(rows, 1)
                if variable.name in dictionary_draft.reasons
            }
        slot = f"variable.{number}."
        yield ColumnGroup(
            number=number,
            fields=tuple(_table_fields(draft, number, table)),
            elsewhere=FieldGroup(
                title="A file elsewhere, or an existing dictionary",
                fields=tuple(_other_file_fields(draft, number)),
            ),
            variables=(*rows, *_blank_rows(draft, number, table)),
            listed=table.key,
            notes=notes,
            errors={
                int(name.removeprefix(slot)): why
                for name, why in draft.wrong.items()
                if name.startswith(slot)
            },
        )


def _blank_rows(draft: Draft, number: int, table: TableDraft) -> Sequence[Variable]:
    if table.path is not None or draft.get(f"dictionary.{number}"):
        return ()
    more = not table.rows or draft.get("do") == "rows"
    return [Variable(name="")] * (_MORE_ROWS * more)


def _table_fields(draft: Draft, number: int, table: TableDraft) -> Iterator[FormField]:
    table_name = draft.get(f"table.{number}")
    names = [path.name for path in files_in(draft.tables)]
    wrong = draft.wrong.get(f"table.{number}", "")
    yield FormField(
        name=f"table.{number}",
        label="From a table of your own",
        hint=f"A file in {draft.tables}. The names and types of its columns are read, "
        "but no values of rows.",
        kind="choice",
        options={name: name for name in (*names, table_name) if name},
        default="no table: type the variables",
        value=table_name,
        error=wrong,
        reloads="variables",
    )
    if table.path is not None:
        yield FormField(
            name=f"ids.{number}",
            label="Columns that identify rows",
            hint="They are not clustered. Separate several by commas.",
            value=", ".join(table.ids),
        )
        yield FormField(
            name=f"levels.{number}",
            label="Write the words of text columns as levels",
            hint="They come from your rows, and everybody can read them. Otherwise "
            "such columns are left out, unless you type their levels.",
            kind="tick",
            value="yes" if table.levels else "",
            reloads="variables",
        )


def _other_file_fields(draft: Draft, number: int) -> Iterator[FormField]:
    for name, label, hint in (
        ("elsewhere", "The path of a table", "Variables are drafted from it."),
        ("dictionary", "The path of a dictionary", "A JSON file, used unchanged."),
    ):
        yield FormField(
            name=f"{name}.{number}",
            label=label,
            hint=hint,
            value=draft.get(f"{name}.{number}"),
            error=draft.wrong.get(f"{name}.{number}", ""),
        )


def build_match_key_content(draft: Draft, field: FormField) -> dict[str, Any]:
    """Return the draft's match keys, or keys proposed from a table, with previews.

    field: the form field of the parameter with the match keys.

    Returns dict[str, Any]: ``table`` is the form field for the table. ``field`` is the
    form field for the keys, with one key per line. ``lines`` contains a preview of each
    key on the table. ``needs`` contains the permissions that each party has to give.
    """
    keys: Sequence[str] = draft.match_keys
    lines: tuple[KeyPreview, ...] = ()
    wrong, wrong_keys = "", field.error
    try:
        if draft.get(_PEOPLE):
            keys, lines = _preview_keys(draft, keys)
        elif draft.get("do") == PROPOSE:
            raise InvalidData("Name a table of your own: keys are proposed from it.")
    except CoterieError as error:
        wrong = error.detail
    except ValueError as error:
        wrong_keys = f"{error}."
    return {
        "table": FormField(
            name=_PEOPLE,
            label="A table of your own with names and dates of birth",
            hint="Keys are proposed from its columns and tried on its rows. Only the keys "
            "go into the terms.",
            value=draft.get(_PEOPLE),
            error=wrong,
        ),
        "field": field.model_copy(
            update={
                "kind": "long",
                "hint": f"One per line, in order of precedence. {field.hint}",
                "limits": "",
                "default": "",
                "value": "\n".join(keys),
                "error": wrong_keys,
            }
        ),
        "lines": lines,
        "needs": explain_quota(len(keys)),
    }


def _preview_keys(
    draft: Draft, keys: Sequence[str]
) -> tuple[Sequence[str], tuple[KeyPreview, ...]]:
    path = draft.resolve_path(draft.get(_PEOPLE))
    previews: Sequence[KeyPreview]
    if draft.get("do") == PROPOSE:
        previews = [
            preview
            for preview in propose_match_keys(path, ReadOptions())
            if preview.is_usable
        ]
        return [preview.key for preview in previews], tuple(previews)
    return keys, tuple(preview_match_keys(path, ReadOptions(), keys))
