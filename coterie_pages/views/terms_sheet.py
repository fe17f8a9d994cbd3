"""From terms to the sheet that people read: every value in words, every risk in full."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from clustering_protocols import catalogue, result_warnings, session_terms
from clustering_protocols.secrecy.identities import fingerprint
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.captions import captions_of
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Field
from clustering_protocols.terms.terms import TERMS_VERSION, SessionRequest, Terms
from coterie_pages.models import (
    DictionaryFields,
    FieldLine,
    Learns,
    NamedInstitution,
    ParameterLine,
    PlannedSlot,
    TermsSheet,
    Versions,
)
from coterie_pages.views.risks import show_risks
from coterie_pages.views.steps import sent_kinds, steps_of

_MOST_LEVELS = 12


def sheet_of(
    text: bytes,
    terms: Terms,
    known: Mapping[str, str],
    *,
    url: str = "",
    slot: str = "",
    you: NamedInstitution | None = None,
) -> TermsSheet:
    """Return the sheet of a session's terms.

    text: the exact text of the terms, of which the digest is shown.
    terms: what the text says.
    known: whose public key is whose, of the cards that were trusted here.
    url: the analyst's address.
    slot: the reader's, if it has one.
    you: the reader's own institution.

    Raises VersionMismatch, InvalidParameters if this release does not compute the same
        risks, or does not know the protocol.
    """
    name = terms.protocol.name
    protocol, params = catalogue.protocol(name), session_terms.check_terms(terms)
    coordinator, analyst = terms.identities.coordinator, terms.identities.analyst
    said = dict(terms.about) | {"title": terms.title}
    for section, _, caption in captions_of(SessionRequest):
        if caption.group is None and getattr(terms, section) is not None:
            said[caption.name] = getattr(terms, section).sentence
    return TermsSheet(
        **said,
        session=terms.session,
        digest=digest(text),
        url=url,
        coordinator=None if coordinator is None else identify(coordinator, known),
        analyst=None if analyst is None else identify(analyst, known),
        slot=slot,
        you=you,
        protocol=name,
        protocol_title=protocol.title,
        summary=protocol.summarise(params, terms.layout),
        paper=protocol.paper,
        parameters=tuple(_parameters_of(params, terms)),
        places=tuple(_places(terms, known, slot, you)),
        learns=tuple(
            Learns(who=who, what=what)
            for who, what in protocol.readers(params, terms.layout).items()
        ),
        personal_data=protocol.personal_data(terms.layout),
        sent=sent_kinds(terms),
        categories=tuple(_categories(terms, slot)),
        risks=show_risks(session_terms.risks_in(terms)),
        steps=steps_of(terms),
        cautions=tuple(result_warnings.of_terms(terms)),
        dictionary=tuple(_dictionary(terms, slot)),
        join_within=terms.deadlines.recruiting,
        answer_within=terms.deadlines.round,
        least_rows=terms.guards.minimum_rows,
        audit=audit_sentence(terms),
        versions=versions_of(terms),
    )


def _categories(terms: Terms, own: str) -> Iterator[str]:
    """Yield the variables of the reader's column group, or of all, as people call them."""
    schemas = terms.dictionary or ()
    if own and schemas:
        schemas = (schemas[terms.layout.slot(own).column],)
    for schema in schemas:
        yield from (field.title or field.name for field in schema.fields)


def versions_of(terms: Terms) -> Versions:
    """Return what writes a page about these terms, and of what."""
    return Versions(
        coterie=version("coterie"), protocol=terms.protocol.version, terms=terms.coterie
    )


def versions_here(protocol: str) -> Versions:
    """Return what writes a page about a session whose terms are not there."""
    return Versions(
        coterie=version("coterie"),
        protocol=catalogue.protocol(protocol).version,
        terms=TERMS_VERSION,
    )


def identify(key: str, known: Mapping[str, str], calls: str = "") -> NamedInstitution:
    """Return whose key this is; ``calls``: what it calls itself, where nobody knows it."""
    name = known.get(key)
    return NamedInstitution(
        name=calls if name is None else name,
        known=name is not None,
        fingerprint=fingerprint(key),
    )


def audit_sentence(terms: Terms) -> str:
    """Return how many updates fit a party's audit of its sums; empty where it has none."""
    params, layout = session_terms.check_terms(terms), terms.layout
    runs = session_terms.runs_of(params, terms.evaluation)
    sizes = catalogue.protocol(terms.protocol.name).sizes()
    few, many = (sizes.updates_that_fit(runs, layout, n) for n in (100, 1000))
    if few is None:
        return ""
    return (
        f"With 100 rows of yours at least {few} updates fit your audit, with 1,000 rows "
        f"{many}; more may fit, and it is 'sums_limit' that says how much may follow."
    )


def _places(
    terms: Terms, known: Mapping[str, str], own: str, you: NamedInstitution | None
) -> Iterator[PlannedSlot]:
    for slot in terms.layout.slots:
        key = terms.identities.slots.get(slot.name)
        expected = None if key is None else identify(key, known)
        if expected is not None and you is not None and slot.name == own:
            expected = you
        yield PlannedSlot(
            slot=slot.name,
            title=slot.title,
            row=slot.row,
            column=slot.column,
            expected=expected,
            own=slot.name == own,
        )


def _parameters_of(params: BaseModel, terms: Terms) -> Iterator[ParameterLine]:
    """Yield every parameter; of several runs, all numbers of clusters."""
    for each in _parameters(params):
        if terms.evaluation is not None and each.name == "n_clusters":
            numbers = ", ".join(map(str, terms.evaluation.n_clusters))
            yield each.model_copy(update={"value": numbers})
        else:
            yield each


def _parameters(params: BaseModel, before: str = "") -> Iterator[ParameterLine]:
    """Yield every parameter with its value; a parameter of parts yields each of them."""
    for name, field in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield from _parameters(value, f"{before}{name}.")
            continue
        usual = not field.is_required() and value == field.get_default(
            call_default_factory=True
        )
        yield ParameterLine(
            name=f"{before}{name}",
            value=_value(to_jsonable_python(value)),
            sentence=" ".join((field.description or "").split()),
            usual=usual,
        )


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _dictionary(terms: Terms, own: str) -> Iterator[DictionaryFields]:
    """Yield the dictionary of each column group, the reader's own first."""
    mine = terms.layout.slot(own).column if own else None
    groups = range(terms.layout.n_column_groups)
    for column in sorted(groups, key=lambda group: group != mine):
        if terms.dictionary is not None:
            yield _fields(terms, column, own=column == mine)


def _fields(terms: Terms, column: int, *, own: bool) -> DictionaryFields:
    schema = (terms.dictionary or ())[column]
    plan = terms.plans[column] if terms.plans else None
    return DictionaryFields(
        column=column,
        slots=terms.layout.column_group(column),
        own=own,
        fields=tuple(_line(field, plan) for field in schema.fields),
    )


def _line(field: Field, plan: ColumnPlan | None) -> FieldLine:
    return FieldLine(
        name=field.name,
        title=field.title,
        unit=field.unit,
        form=_form(field),
        range=_range(field),
        preparation=_preparation(field, plan),
    )


def _preparation(field: Field, plan: ColumnPlan | None) -> str:
    """Return what becomes of a field before it is clustered, or that it is not."""
    if field.role == "describe":
        return "described in profiles alone, not clustered"
    if plan is None:
        return ""
    said = plan.preparation.of(field).sentence
    if field.is_ordinal:
        made = "the place of the level"
    elif field.is_category:
        made = "a column for each level"
    else:
        made = "0 or 1" if field.type == "boolean" else ""
    return ", ".join(filter(None, [made, said]))


def _form(field: Field) -> str:
    if not field.is_category:
        return "yes or no" if field.type == "boolean" else field.type
    return "ordered levels" if field.is_ordinal else "levels"


def _range(field: Field) -> str:
    """Return which values a field takes, as far as the dictionary says it."""
    if field.is_category:
        shown = ", ".join(field.labels[:_MOST_LEVELS])
        more = len(field.labels) - _MOST_LEVELS
        return f"{shown} and {more} more" if more > 0 else shown
    low, high = field.constraints.minimum, field.constraints.maximum
    if low is None and high is None:
        return ""
    least, most = (_bound(end) for end in (low, high))
    if low is None or high is None:
        return f"from {least}" if high is None else f"up to {most}"
    return f"{least} to {most}"


def _bound(bound: float | str | None) -> str:
    if isinstance(bound, float) and math.isfinite(bound):
        return f"{bound:g}"
    return str(bound)
