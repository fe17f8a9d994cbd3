"""A table is chosen: which file, how it is read, and whether it fits the terms."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.terms.session_risks import CHOICES, LIMITS, SUMS_LIMIT
from clustering_protocols.terms.terms import Terms
from coterie_pages.desk_models import FieldGroup, TableScreen
from coterie_pages.models import Banner, FormField, Screen
from party_sdk.admission.table_admission import agreed_in
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.responses import (
    Form,
    bad,
    desk_of,
    form_of,
    query_of,
    render_page,
    to,
)
from party_sdk.desk.tables.mapping_page import MappingPlace, field_of, mapping_of, mend
from party_sdk.desk.tables.named_file import (
    csv_of,
    file_choice,
    path_of,
    split_words,
    written_as,
)
from party_sdk.home.policy import describe_quota, match_keys_at
from party_sdk.home.policy_files import read_policy
from party_sdk.party.notifications import check_address
from party_sdk.supervisor import Order, OrderedTable, place_order

if TYPE_CHECKING:
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.tables import CheckReport

IDS_PER_ROW: Final = "ids_per_row"
_TICKS: Final = tuple(name for name in CHOICES if name != SUMS_LIMIT)
_USUAL_QUOTA: Final = "Most ids that another party may bring for each of your rows."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """What a form says of a table.

    columns: ticked ones; None where nobody was asked yet, which stands for all.
    checked: whether it is to be held against the terms.
    notify: addresses that the analyst is to tell, as they were typed.
    limits: what the party decides alone, as it was typed; None where nobody was asked.
    mapping: how the table is mended, as a hidden field has it; empty for as it was.
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
    def of(cls, form: Form, folder: Path) -> TableForm:
        """Return what was chosen; a path counts from the folder of tables."""
        path, seen = path_of(form, folder), bool(form.one("seen"))
        ids = tuple(form.all("id"))
        ticked = tuple(name for name in form.all("column") if name not in ids)
        return cls(
            path=path,
            csv=csv_of(form),
            ids=ids,
            columns=ticked if seen else None,
            checked=seen,
            notify=form.one("notify").strip(),
            limits=typed_in(form) if form.one("limits") else None,
            mapping=form.one("mapping"),
        )

    @classmethod
    def as_in(cls, earlier: AddressedParty) -> TableForm:
        """Return the table of an earlier session, read and mended as it was there."""
        order = earlier.order
        if order is None or order.table is None:
            return cls(path="")
        mapping = earlier.kept_mapping
        return cls(
            path=order.table.path,
            csv=shlex.join(order.table.csv),
            ids=order.table.id_column,
            columns=order.table.columns,
            checked=True,
            notify=" ".join(order.notify),
            mapping="" if mapping is None else field_of(mapping),
        )

    def addresses(self) -> tuple[str, ...]:
        """Return whom the analyst is to tell; :class:`InvalidParameters` if nobody can."""
        found = tuple(dict.fromkeys(self.notify.replace(",", " ").split()))
        for address in found:
            check_address(address)
        return found

    def to_ordered_table(self) -> OrderedTable:
        """Return the table as an order names it."""
        if not self.path:
            raise InvalidData("Name a table.")
        if self.columns is not None and not self.columns:
            raise InvalidData("No column is ticked to be clustered.")
        return OrderedTable(
            path=self.path,
            id_column=self.ids,
            columns=self.columns or (),
            csv=tuple(split_words(self.csv)),
            mapping=self._mapping_text(),
        )

    def _mapping_text(self) -> str | None:
        """Return the mapping as a file has it."""
        from party_sdk.tables.mapping import write_mapping

        mapping = mapping_of(self.mapping)
        return None if mapping is None else write_mapping(mapping).decode()


def get_table(request: Request) -> Response:
    """Show the files to choose from, or how the chosen one is read."""
    kept = kept_of(request)
    form = query_of(request)
    chosen = TableForm.of(form, desk_of(request).tables)
    if form.one("again") and (earlier := kept.last_time()):
        chosen = TableForm.as_in(earlier)
    return table_page(request, kept, chosen)


def post_order(request: Request) -> Response:
    """Place the order on a table that fits the terms."""
    kept = kept_of(request)
    chosen = TableForm.of(form_of(request), kept.desk.tables)
    try:
        terms = kept.terms()
        table = order_table(chosen, terms, kept.slot)
        named = kept.mend(table.to_spec())
        if named.check_table(terms, kept.slot).problems:
            return table_page(request, kept, chosen)
        _place(kept, table, chosen)
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    return to(request, kept.address)


def _place(kept: AddressedParty, table: OrderedTable, chosen: TableForm) -> None:
    """Place an order, on the table that was chosen."""
    before = kept.order or Order(invitation=str(kept.invitation))
    usual = taken_back(before.choices, read_policy(kept.desk.home).sums_limit)
    typed = typed_limits(kept, chosen)
    update = {
        "table": table,
        "choices": {**usual, **chosen_of(typed)},
        "ids_per_row": quota_of(typed),
        "labels": kept.labels,
        "notify": chosen.addresses(),
        "withdrawn": None,
    }
    place_order(kept.desk.home, before.model_copy(update=update))


def table_page(
    request: Request,
    kept: AddressedParty,
    chosen: TableForm,
    notice: Banner | None = None,
) -> Response:
    """Show what there is to choose, and how what was chosen is read."""
    said, trouble = describe_reading(kept, chosen, _read)
    order = kept.order
    earlier = None if chosen.path or notice else kept.last_time()
    model = TableScreen(
        "desk/table.html.j2",
        place="table",
        earlier="" if earlier is None else earlier.title(),
        mapping=chosen.mapping,
        notify=chosen.notify or " ".join(order.notify if order else ()),
        choices=choices_of(kept, chosen),
        **said,
    )
    return render_page(request, model, notice=notice or trouble)


def describe_reading(
    kept: AddressedParty,
    chosen: TableForm,
    read: Callable[[AddressedParty, TableForm], dict[str, Any]],
) -> tuple[dict[str, Any], Banner | None]:
    """Return what a page says of the files and of the chosen one, and what is wrong.

    read: says how the chosen table is read.
    """
    said, trouble = dict(file_choice(kept.desk.tables, chosen.path, chosen.csv)), None
    if chosen.path:
        try:
            said |= written_as(chosen.path, chosen.csv) | read(kept, chosen)
        except CoterieError as error:
            trouble = bad(error)
    usual: dict[str, Any] = dict.fromkeys(("is_mapped", "mends", "described"), False)
    usual |= {"title": kept.title(), "session": kept.session, "slot": kept.slot}
    usual |= {"clustered": (), "linking": ()}
    return usual | said, trouble


def typed_limits(kept: AddressedParty, chosen: TableForm) -> Mapping[str, str]:
    """Return what the party decides alone: as a form says, or the order before."""
    if chosen.limits is not None:
        return chosen.limits
    return typed_before(kept.order)


def choices_of(kept: AddressedParty, chosen: TableForm) -> FieldGroup:
    """Return what the party decides alone, as a form shows it."""
    terms = kept.terms()
    params = check_terms(terms)
    admitted = read_policy(kept.desk.home).ids_per_row
    needs = describe_quota(match_keys_at(terms, kept.slot), admitted)
    counts = params.selects_rows and shares_rows(terms, kept.slot)
    return shown_choices(typed_limits(kept, chosen), Quota(counts, needs))


def _read(kept: AddressedParty, chosen: TableForm) -> dict[str, Any]:
    """Return how a table is read, and with its columns chosen whether it fits."""
    terms = kept.terms()
    table = order_table(chosen, terms, kept.slot)
    named = kept.mend(table.to_spec())
    agreed = agreed_in(terms, kept.slot)
    dictionary = agreed.dictionary
    found = describe_table(
        named,
        chosen,
        None if dictionary is None else dictionary.used.names,
        lambda: named.check_table(terms, kept.slot),
        lambda: named.examine(agreed),
        agreed.match_columns,
    )
    return {**found, "mends": dictionary is not None}


def describe_table(
    named: TableSpec,
    chosen: TableForm,
    described: Sequence[str] | None,
    check: Callable[[], CheckReport],
    look: Callable[[], CheckReport] | None = None,
    linking: Sequence[str] = (),
) -> dict[str, Any]:
    """Return how a table is read.

    described: the columns that are clustered, where that is settled.
    check: returns what hinders the table, once its columns are chosen.
    look: returns how it is read before; by default as it shows by itself.
    linking: the columns of which match keys are made.
    """
    from party_sdk.tables import column_names

    names = column_names(Path(named.path), named.options)
    report = check() if chosen.checked else (look or named.examine)()
    if not report.columns:
        read = named.examine()
        parts = ("rows", "not_read", "dialect", "columns")
        report = report.model_copy(update={part: getattr(read, part) for part in parts})
    clustered = described or chosen.columns
    if clustered is None:
        clustered = [name for name in names if name not in linking]
    sheet = report.dialect.get("sheet")
    return {
        "names": tuple(names),
        "ids": tuple(name for name in names if name in chosen.ids),
        "clustered": tuple(n for n in names if n in clustered and n not in chosen.ids),
        "linking": tuple(name for name in names if name in linking),
        "report": report,
        "described": described is not None,
        "checked": chosen.checked,
        "warnings": tuple(_further(report)),
        "is_mapped": named.table_mapping is not None,
        **({"sheet": str(sheet)} if sheet else {}),
    }


def _further(report: CheckReport) -> Iterator[str]:
    """Yield the warnings that say something else than the problems."""
    for warning in report.warnings:
        if not any(problem.what in warning for problem in report.problems):
            yield warning


def order_table(chosen: TableForm, terms: Terms, slot: str) -> OrderedTable:
    """Return a table without a choice of columns where the dictionary makes it."""
    if agreed_in(terms, slot).dictionary is not None:
        chosen = replace(chosen, columns=None)
    return chosen.to_ordered_table()


class Quota(NamedTuple):
    """Whether others bring ids of one's rows, and why more have to be admitted."""

    counts: bool
    needs: str


def typed_in(form: Form) -> dict[str, str]:
    """Return the choices of a form, as they were typed."""
    typed = {name: "true" for name in _TICKS if form.one(name)}
    numbers = {name: form.one(name).strip() for name in (SUMS_LIMIT, IDS_PER_ROW)}
    return typed | {name: text for name, text in numbers.items() if text}


def typed_before(order: Order | None) -> dict[str, str]:
    """Return what was decided for an order, as a form would send it."""
    if order is None:
        return {}
    typed = {name: "true" for name in _TICKS if order.choices.get(name)}
    said = {SUMS_LIMIT: order.choices.get(SUMS_LIMIT), IDS_PER_ROW: order.ids_per_row}
    return typed | {
        name: f"{each:g}" for name, each in said.items() if each is not None
    }


def chosen_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return choices as an order holds them.

    Raises InvalidParameters if the share is no number from 0 to 1.
    """
    chosen: dict[str, Any] = {name: True for name in _TICKS if name in typed}
    if SUMS_LIMIT in typed:
        chosen[SUMS_LIMIT] = _share(typed[SUMS_LIMIT])
    return chosen


def quota_of(typed: Mapping[str, str]) -> float | None:
    """Return how many ids others may bring for each own row; None for as the policy says.

    Raises InvalidParameters if that is no number.
    """
    if IDS_PER_ROW not in typed:
        return None
    return _number(typed[IDS_PER_ROW], IDS_PER_ROW, "a number, from 0: type 12.")


def taken_back(before: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Return the limits of an order before as the policy has them, with its share.

    A party that continues keeps the choices that nobody names.
    """
    return {
        name: share if name == SUMS_LIMIT else False
        for name in before
        if name in LIMITS
    }


def shown_choices(typed: Mapping[str, str], quota: Quota) -> FieldGroup:
    """Return the part of a form that asks for them."""
    ticks = [
        FormField(
            name=name,
            label=name,
            hint=CHOICES[name],
            kind="tick",
            value=typed.get(name, ""),
        )
        for name in _TICKS
    ]
    numbers = [_ask_number(SUMS_LIMIT, CHOICES[SUMS_LIMIT], typed)]
    if quota.counts:
        asked = _ask_number(IDS_PER_ROW, _USUAL_QUOTA, typed)
        numbers.append(asked.model_copy(update={"wrong": quota.needs}))
    return FieldGroup(
        title="Limits that hold for this session alone",
        note="Leave them as they are unless a message names one of them.",
        fields=(*ticks, *numbers),
    )


def limit_in(sentence: str) -> str:
    """Return the first choice that a sentence names; empty if it names none."""
    return next((name for name in CHOICES if name in sentence), "")


def _ask_number(name: str, sentence: str, typed: Mapping[str, str]) -> FormField:
    return FormField(
        name=name,
        label=name,
        kind="number",
        hint=f"{sentence} Leave it empty for what your policy says.",
        value=typed.get(name, ""),
    )


def _share(text: str) -> float:
    what = "a share, from 0 to 1: type 0.5."
    return _number(text, SUMS_LIMIT, what, largest=1)


def _number(text: str, name: str, what: str, largest: float = inf) -> float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = -1.0
    if not 0 <= number <= largest:
        raise InvalidParameters(f"{name!r} is {what}")
    return number


def get_mapping(request: Request) -> Response:
    """Show the choice of the table: a mapping is one of a table."""
    return to(request, f"{kept_of(request).address}/table")


def post_mapping(request: Request) -> Response:
    """Draft a mapping, or try the one of the form on the table."""
    kept, form = kept_of(request), form_of(request)
    chosen = TableForm.of(form, kept.desk.tables)
    try:
        said, trouble = mend(form, _find_place(kept))
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    model = Screen(
        "desk/mapping.html.j2",
        dictionary="",
        notify="",
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        choices=choices_of(kept, chosen),
        **said,
    )
    return render_page(request, model, notice=trouble)


def _find_place(kept: AddressedParty) -> MappingPlace:
    terms = kept.terms()
    schema = agreed_in(terms, kept.slot).dictionary
    if schema is None:
        raise NotReady("The terms of this session have no dictionary.")
    return MappingPlace(
        address=f"{kept.address}/mapping",
        schema=schema,
        check=lambda named: named.check_table(terms, kept.slot),
        folder=kept.desk.tables,
        kept=kept.kept_mapping,
    )


def post_rehearsal(request: Request) -> Response:
    """Play the session with the table and made-up others; nothing is sent."""
    from party_sdk.lab.rehearsal import rehearse

    kept = kept_of(request)
    chosen = TableForm.of(form_of(request), kept.desk.tables)
    try:
        terms = kept.terms()
        ordered = order_table(chosen, terms, kept.slot)
        table = kept.mend(ordered.to_spec())
        data = table.open(agreed_in(terms, kept.slot))
        choices = chosen_of(typed_limits(kept, chosen))
        choices.setdefault(SUMS_LIMIT, read_policy(kept.desk.home).sums_limit)
        found = rehearse(terms, kept.slot, data, choices)
    except CoterieError as error:
        return table_page(request, kept, chosen, bad(error))
    page = Screen(
        "desk/rehearsal.html.j2",
        title=kept.title(),
        session=kept.session,
        slot=kept.slot,
        chosen=chosen,
        choices=choices_of(kept, chosen),
        played=found,
    )
    return render_page(request, page)
