"""The page on which an operator chooses a table and checks it against the terms."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidData, InvalidParameters, NotReady
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.terms.session_risks import CHOICES, LIMITS, SUMS_LIMIT
from clustering_protocols.terms.terms import Terms
from coterie_pages.desk_models import FieldGroup, TableScreen
from coterie_pages.models import FormField, Screen
from party_sdk.admission.table_admission import slot_fields_of
from party_sdk.admission.table_files import TableSpec
from party_sdk.desk.party.addressed_party import AddressedParty, requested_party
from party_sdk.desk.responses import Form, form_of, redirect_to, render_page
from party_sdk.desk.tables.mapping_page import (
    build_mapping_page,
    has_unread_changes,
    ids_of,
    mapping_of,
    serialise_mapping,
)
from party_sdk.desk.tables.named_file import csv_of, describe_file, path_of, split_words
from party_sdk.home.policy import count_match_keys, explain_quota
from party_sdk.home.policy_files import read_policy
from party_sdk.lab.rehearsal import rehearse
from party_sdk.party.notifications import check_address
from party_sdk.supervisor.orders import OrderedTable, place_order
from party_sdk.tables import CheckReport, list_columns
from party_sdk.tables.mapping import dump_mapping

IDS_PER_ROW: Final = "ids_per_row"
_TICKS: Final = tuple(name for name in CHOICES if name != SUMS_LIMIT)
_NUMBERS: Final = {
    SUMS_LIMIT: (1.0, "a proportion from 0 to 1, such as 0.5."),
    IDS_PER_ROW: (inf, "a number of at least 0, such as 12."),
}
"""For each numeric limit: its maximum, and a description of valid input."""
_QUOTA_HINT: Final = "The most ids that another party may bring for each of your rows."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """The fields of the form about a party's table.

    columns: the ticked columns; None for all columns, if the form has not listed them.
    checked: whether to check the table against the terms.
    notify: e-mail addresses for notifications, as typed.
    limits: the party's own limits, as typed; None if the form does not contain them.
    mapping: the content of the hidden field; empty to use the current mapping.
    """

    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    checked: bool = False
    notify: str = ""
    limits: Mapping[str, str] | None = None
    mapping: str = field(default="", repr=False)

    @classmethod
    def from_form(cls, form: Form, folder: Path) -> TableForm:
        """Read a submitted form; a relative path is resolved against ``folder``."""
        path, is_seen = path_of(form, folder), bool(form.get("seen"))
        ids = ids_of(form)
        ticked = tuple(name for name in form.get_all("column") if name not in ids)
        limits = {name: "true" for name in _TICKS if form.get(name)}
        numbers = {name: form.get(name).strip() for name in _NUMBERS}
        limits |= {name: text for name, text in numbers.items() if text}
        return cls(
            path=path,
            csv=csv_of(form),
            ids=ids,
            columns=ticked if is_seen else None,
            checked=is_seen,
            notify=form.get("notify").strip(),
            limits=limits if form.get("limits") else None,
            mapping=form.get("mapping"),
        )

    @classmethod
    def of_party(cls, party: AddressedParty) -> TableForm:
        """Return a form with the table, options and mapping of an earlier party."""
        order = party.current_order
        if (table := order.table) is None:
            return cls(path="")
        mapping = party.current_mapping
        return cls(
            path=table.path,
            csv=shlex.join(table.csv),
            ids=table.id_column,
            columns=table.columns,
            checked=True,
            notify=" ".join(order.notify),
            mapping="" if mapping is None else serialise_mapping(mapping),
        )

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses; raise :class:`InvalidParameters` if one is invalid."""
        addresses = tuple(dict.fromkeys(self.notify.replace(",", " ").split()))
        for address in addresses:
            check_address(address)
        return addresses

    def to_ordered_table(self) -> OrderedTable:
        """Return the table for an order; raise InvalidData if no table is named."""
        if not self.path:
            raise InvalidData("Name a table.")
        if self.columns is not None and not self.columns:
            raise InvalidData("Tick at least one column to cluster.")
        mapping = mapping_of(self.mapping)
        return OrderedTable(
            path=self.path,
            id_column=self.ids,
            columns=self.columns or (),
            csv=tuple(split_words(self.csv)),
            mapping=None if mapping is None else dump_mapping(mapping).decode(),
        )


def get_table(request: Request) -> Response:
    """Show the available files or, once one is chosen, how it is read.

    The other pages about the table send their form here, so that its fields are kept.
    """
    party, form = requested_party(request), form_of(request)
    table_form = TableForm.from_form(form, party.desk.tables)
    previous = None if table_form.path else party.find_earlier_party()
    if form.get("again") and previous is not None:
        table_form, previous = TableForm.of_party(previous), None
    reading, trouble = describe_file(
        party.desk.tables,
        table_form.path,
        table_form.csv,
        lambda _: _describe_own_table(party, table_form),
    )
    model = TableScreen(
        "desk/table.html.j2",
        place="table",
        party=party,
        earlier="" if previous is None else previous.title,
        mapping=table_form.mapping,
        notify=notification_addresses(party, table_form),
        choices=limit_fields(party, table_form),
        **reading,
    )
    return render_page(request, model, notice=trouble)


def post_order(request: Request) -> Response:
    """Place the party's order if the submitted table fits the terms."""
    party, form = requested_party(request), form_of(request)
    if has_unread_changes(form):  # show first how they read the table
        return post_mapping(request)
    table_form = TableForm.from_form(form, party.desk.tables)
    terms = party.terms()
    table = build_ordered_table(table_form, terms, party.slot)
    spec = party.with_mapping(table.to_spec())
    if spec.check_table(terms, party.slot).problems:
        return get_table(request)
    order = party.current_order
    choices = read_limits(typed_limits(party, table_form))
    ids_per_row = choices.pop(IDS_PER_ROW, None)  # None: the policy's value
    # reset explicitly, because a party that continues would keep earlier choices
    defaults: dict[str, Any] = {name: False for name in order.choices if name in LIMITS}
    if SUMS_LIMIT in defaults:
        defaults[SUMS_LIMIT] = read_policy(party.home).sums_limit
    update = {
        "table": table,
        "choices": {**defaults, **choices},
        "ids_per_row": ids_per_row,
        "labels": party.labels_path,
        "notify": table_form.addresses(),
        "withdrawn": None,
    }
    place_order(party.home, order.model_copy(update=update))
    return redirect_to(request, party.address)


def typed_limits(party: AddressedParty, table_form: TableForm) -> Mapping[str, str]:
    """Return the party's own limits from the form or, if it has none, its order."""
    if table_form.limits is not None:
        return table_form.limits
    order = party.current_order
    typed = {name: "true" for name in _TICKS if order.choices.get(name)}
    limits = {SUMS_LIMIT: order.choices.get(SUMS_LIMIT), IDS_PER_ROW: order.ids_per_row}
    return typed | {
        name: f"{number:g}" for name, number in limits.items() if number is not None
    }


def notification_addresses(party: AddressedParty, table_form: TableForm) -> str:
    """Return the addresses for notifications, from the form or otherwise from the order."""
    if table_form.limits is not None:
        return table_form.notify
    return table_form.notify or " ".join(party.current_order.notify)


def limit_fields(party: AddressedParty, table_form: TableForm) -> FieldGroup:
    """Return the form fields of the party's own limits for this session."""
    typed, terms = typed_limits(party, table_form), party.terms()
    fields = [
        FormField(
            name=name,
            label=name,
            hint=CHOICES[name],
            kind="tick",
            value=typed.get(name, ""),
        )
        for name in _TICKS
    ]
    numbers = {SUMS_LIMIT: (CHOICES[SUMS_LIMIT], "")}
    if check_terms(terms).selects_rows and shares_rows(terms, party.slot):
        quota = read_policy(party.home).ids_per_row
        needs = explain_quota(count_match_keys(terms, party.slot), quota)
        numbers[IDS_PER_ROW] = (_QUOTA_HINT, needs)
    fields += [
        FormField(
            name=name,
            label=name,
            kind="number",
            hint=f"{sentence} Leave it empty to use your policy's value.",
            value=typed.get(name, ""),
            error=needs,
        )
        for name, (sentence, needs) in numbers.items()
    ]
    return FieldGroup(
        title="Limits for this session only",
        note="Leave them as they are unless a message names one of them.",
        fields=tuple(fields),
    )


def read_limits(typed: Mapping[str, str]) -> dict[str, Any]:
    """Parse the limits that a person typed, and return those that are set, by name.

    Raises InvalidParameters if a value is not a number, or if it is out of range.
    """
    limits: dict[str, Any] = {name: True for name in _TICKS if name in typed}
    for name, (largest, expected) in _NUMBERS.items():
        if name in typed:
            try:
                number = float(typed[name].replace(",", "."))
            except ValueError:
                number = -1.0
            if not 0 <= number <= largest:
                raise InvalidParameters(f"{name!r} must be {expected}")
            limits[name] = number
    return limits


def _describe_own_table(party: AddressedParty, table_form: TableForm) -> dict[str, Any]:
    terms = party.terms()
    table = build_ordered_table(table_form, terms, party.slot)
    spec = party.with_mapping(table.to_spec())
    fields = slot_fields_of(terms, party.slot)
    dictionary = fields.dictionary
    reading = describe_table(
        spec,
        table_form,
        None if dictionary is None else dictionary.clustered_part.names,
        lambda: spec.check_table(terms, party.slot),
        lambda: spec.examine(fields),
        fields.match_key_columns,
    )
    return {**reading, "mends": dictionary is not None}


def describe_table(
    table: TableSpec,
    table_form: TableForm,
    named_columns: Sequence[str] | None,
    check: Callable[[], CheckReport],
    examine: Callable[[], CheckReport] | None = None,
    linking: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the page content that describes how a table is read.

    named_columns: the columns to cluster, if the terms name them.
    check: checks the table against the terms; called once its columns are chosen.
    examine: examines the table; called until its columns are chosen. By default, the
        table is examined without terms.
    linking: the columns that the match keys use.
    """
    names = list_columns(Path(table.path), table.options)
    report = check() if table_form.checked else (examine or table.examine)()
    if not report.columns:
        plain = table.examine()
        parts = ("rows", "not_read", "dialect", "columns")
        update = {part: getattr(plain, part) for part in parts}
        report = report.model_copy(update=update)
    clustered = named_columns or table_form.columns
    if clustered is None:
        clustered = [name for name in names if name not in linking]
    sheet = report.dialect.get("sheet")
    return {
        "names": tuple(names),
        "ids": tuple(name for name in names if name in table_form.ids),
        "clustered": tuple(
            n for n in names if n in clustered and n not in table_form.ids
        ),
        "linking": tuple(name for name in names if name in linking),
        "report": report,
        "described": named_columns is not None,
        "checked": table_form.checked,
        "warnings": report.warning_sentences + report.obstacle_sentences,
        "is_mapped": table.options.mapping is not None,
        **({"sheet": str(sheet)} if sheet else {}),
    }


def build_ordered_table(table_form: TableForm, terms: Terms, slot: str) -> OrderedTable:
    """Return the table for an order; a dictionary in the terms determines its columns."""
    if slot_fields_of(terms, slot).dictionary is not None:
        table_form = replace(table_form, columns=None)
    return table_form.to_ordered_table()


def post_mapping(request: Request) -> Response:
    """Draft a mapping for the table, or try the submitted mapping on it."""
    party, form = requested_party(request), form_of(request)
    table_form = TableForm.from_form(form, party.desk.tables)
    terms = party.terms()
    schema = slot_fields_of(terms, party.slot).dictionary
    if schema is None:
        raise NotReady("The terms of this session have no dictionary.")
    content, trouble = build_mapping_page(
        form,
        party.desk.tables,
        schema,
        lambda table: table.check_table(terms, party.slot),
        party.current_mapping,
    )
    model = Screen(
        "desk/mapping.html.j2",
        place=f"{party.address}/table/mapping",
        dictionary="",
        party=party,
        notify=notification_addresses(party, table_form),
        choices=limit_fields(party, table_form),
        **content,
    )
    return render_page(request, model, notice=trouble)


def post_rehearsal(request: Request) -> Response:
    """Rehearse the session with the table and simulated other parties; nothing is sent."""
    party, form = requested_party(request), form_of(request)
    if has_unread_changes(form):
        return post_mapping(request)
    table_form = TableForm.from_form(form, party.desk.tables)
    terms = party.terms()
    ordered = build_ordered_table(table_form, terms, party.slot)
    table = party.with_mapping(ordered.to_spec())
    data = table.open(slot_fields_of(terms, party.slot))
    choices = read_limits(typed_limits(party, table_form))
    choices.pop(IDS_PER_ROW, None)
    choices.setdefault(SUMS_LIMIT, read_policy(party.home).sums_limit)
    page = Screen(
        "desk/rehearsal.html.j2",
        party=party,
        chosen=table_form,
        notify=table_form.notify,
        choices=limit_fields(party, table_form),
        played=rehearse(terms, party.slot, data, choices),
    )
    return render_page(request, page)
