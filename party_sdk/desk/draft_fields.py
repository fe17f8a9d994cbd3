"""From a draft of a session to the form that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, get_args

from clustering_protocols import registry
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.evaluation import Rule
from clustering_protocols.terms import About, Layout
from coterie_pages.fields import fields_of
from coterie_pages.models.desk_coordinator import ColumnsLine, NewSession, SlotLine
from coterie_pages.models.fields import FormField, Option
from coterie_pages.words import figure
from party_sdk.advice import layout_of, situation_of
from party_sdk.desk.coordinating import numbered
from party_sdk.desk.drafts import PARAM, Draft, Place
from party_sdk.desk.table_drafts import TableDraft
from party_sdk.identities import Acquaintances
from party_sdk.questions import QUESTIONS
from party_sdk.supervisor.clock import now

_LABELS: Final = {
    "title": "Title",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "contact": "Contact",
}
_USUAL_PARTIES: Final = 3
_MOST_COLUMNS: Final = 50
_SEVERAL: Final = (
    "Several, such as 2..8 or 2, 3, 5, make a run of each, of which one is chosen."
)


def page_of(draft: Draft, known: Acquaintances) -> NewSession:
    """Return the form of a draft, with what is wrong beside each field."""
    protocol = registry.protocol(draft.protocol)
    schema = protocol.params.model_json_schema()
    wrong = {name.removeprefix(PARAM): why for name, why in draft.wrong.items()}
    fields = [
        _several(each)
        for each in fields_of(schema, draft.parameters, wrong, prefix=PARAM)
    ]
    more = tuple(each for each in fields if not each.required)
    places = draft.places() or _places(draft)
    return NewSession(
        method=_method(draft),
        title=protocol.title,
        summary=protocol.summary,
        about=tuple(_about(draft)),
        parameters=tuple(each for each in fields if each.required),
        more=more,
        chosen=sum(bool(each.value or each.wrong) for each in more),
        runs=tuple(_runs(draft)),
        rest=tuple(_rest(draft)),
        slots=tuple(SlotLine(**place._asdict()) for place in places),
        known=tuple(Option(value=name, text=name) for name in sorted(known.read())),
        wrong_slots=draft.wrong.get("slots", ""),
        columns=tuple(_columns(draft, places)),
        folder=str(draft.tables),
    )


def _several(field: FormField) -> FormField:
    if field.name != f"{PARAM}n_clusters":
        return field
    hint = f"{field.hint} {_SEVERAL}".strip()
    return field.model_copy(update={"label": "Number of clusters", "hint": hint})


def _method(draft: Draft) -> FormField:
    known = {name: p for name, p in registry.catalogue().items() if p.methods}
    return FormField(
        name="protocol",
        label="Method",
        kind="choice",
        options=tuple(
            Option(value=name, text=f"{name}: {each.title}")
            for name, each in known.items()
        ),
        required=True,
        value=draft.protocol,
    )


def _about(draft: Draft) -> Iterator[FormField]:
    for name, label in _LABELS.items():
        yield _field(
            draft,
            name,
            label,
            About.model_fields[name].description or "",
            required=name == "title",
        )


def _runs(draft: Draft) -> Iterator[FormField]:
    rules = {"later": "I read the figures of all runs, and choose then"}
    rules |= {rule: f"the best by {figure(rule)}" for rule in get_args(Rule)}
    yield _field(
        draft,
        "choose",
        "Of several numbers of clusters, which counts?",
        "Parties get the labels of that run.",
        usual="the best by simplified silhouette, where there is one",
        choices=rules,
    )
    yield _field(
        draft,
        "choose_days",
        "Days to choose, if you choose",
        "After them the usual rule decides.",
        usual="7",
    )


def _rest(draft: Draft) -> Iterator[FormField]:
    week = now() + timedelta(days=7)
    yield _field(
        draft,
        "join_days",
        "Days within which all have joined",
        f"From the opening on: 7 days from now is {week:%A, %d %B %Y}.",
        usual="7",
    )
    yield _field(
        draft,
        "answer_days",
        "Days within which each round is answered",
        "Half a day is 0.5. Whoever is late ends the session, unless you wait longer.",
        usual="1",
    )
    yield _field(
        draft,
        "minimum_rows",
        "Fewest rows of each party",
        "A party with fewer does not take part.",
        usual="10",
    )
    yield _field(
        draft,
        "missing",
        "Where values are missing",
        "Needs a dictionary.",
        usual="a table with gaps is refused",
        choices={
            "drop": "rows with a gap do not take part",
            "mean": "the mean fills them",
            "median": "the median fills them",
        },
    )
    yield _field(
        draft,
        "profiles",
        "Who reads what the clusters are like, field by field?",
        "Needs a dictionary.",
        usual="nobody",
        choices={
            "members": "parties, of the columns that they hold",
            "everybody": "everybody, rounded",
        },
    )
    yield _field(
        draft,
        "profile_rows",
        "Clusters with fewer rows are told together",
        "Of profiles.",
        usual="10",
    )


def _field(
    draft: Draft,
    name: str,
    label: str,
    hint: str,
    *,
    usual: str = "",
    choices: dict[str, str] | None = None,
    required: bool = False,
) -> FormField:
    options = (choices or {}).items()
    return FormField(
        name=name,
        label=label,
        hint=hint,
        kind="choice" if choices else "text",
        options=tuple(Option(value=value, text=text) for value, text in options),
        usual=usual,
        required=required,
        value=draft.one(name),
        wrong=draft.wrong.get(name, ""),
    )


def _places(draft: Draft) -> list[Place]:
    """Return the places with which the form begins: as advice was asked, or a few."""
    layout = Layout.lattice(_USUAL_PARTIES)
    if draft.one("parties") and draft.one("partitioning"):
        defaults = {name: question.default for name, question in QUESTIONS.items()}
        try:
            parties = numbered(draft.one("parties"), "parties", 2)
            split = {"partitioning": draft.one("partitioning"), "parties": parties}
            layout = layout_of(situation_of({**defaults, **split}, 2))
        except InvalidParameters:
            pass  # somebody changed the address: the usual places then
    return [
        Place(slot.name, slot.title, str(slot.row + 1), str(slot.column + 1), "")
        for slot in layout.slots
    ]


def _columns(draft: Draft, places: list[Place]) -> Iterator[ColumnsLine]:
    groups = {place.column for place in places if place.column.isdigit()}
    for number in range(1, 1 + min(_MOST_COLUMNS, max(1, len(groups)))):
        drafted = TableDraft.of(draft.form, number, draft.tables).shown()
        yield ColumnsLine(
            number=number,
            file=draft.one(f"dictionary.{number}"),
            table=draft.one(f"table.{number}"),
            ids=draft.one(f"ids.{number}"),
            levels=bool(draft.one(f"levels.{number}")),
            fields=drafted.fields,
            listed=drafted.listed,
            wrong=draft.wrong.get(f"dictionary.{number}", ""),
        )
