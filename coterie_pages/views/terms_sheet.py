"""From terms to the sheet that people read: values in words, steps, and risks in full."""

from __future__ import annotations

import inspect
import json
import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from clustering_protocols import catalogue, result_warnings, session_terms
from clustering_protocols.contract import ClusteringProtocol, Exchange, Params, Stage
from clustering_protocols.engine.signatures import build_closing, build_opening
from clustering_protocols.engine.stages import profiles_stage, with_filling
from clustering_protocols.records.arrays import Spec, item_dtype
from clustering_protocols.records.record import REACHES, Record
from clustering_protocols.secrecy.identities import fingerprint
from clustering_protocols.terms import session_risks as known
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.captions import captions_of
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.session_risks import BY_DESIGN
from clustering_protocols.terms.terms import TERMS_VERSION, SessionRequest, Terms
from coterie_pages.models import (
    DictionaryFields,
    FieldLine,
    Item,
    Learns,
    Message,
    NamedInstitution,
    ParameterLine,
    PlannedSlot,
    Risk,
    RoundKind,
    SentKind,
    Step,
    TermsSheet,
    Versions,
)

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
        consent=consent_digest(text, terms),
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
        learns=tuple(_list_readers(protocol, params, terms)),
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


def consent_digest(text: bytes, terms: Terms) -> str:
    """Return the SHA-256 of all that a party accepts, as hex.

    That is the exact text of the terms, every risk with its sentence, and every kind of
    what is sent, as this release words them: another release asks again.
    """
    risks = session_terms.risks_in(terms)
    accepted = {
        "terms": digest(text),
        "risks": {code: risk.sentence for code, risk in risks.items()},
        "sent": [[kind.reach, kind.meaning] for kind in sent_kinds(terms)],
    }
    return digest(json.dumps(accepted, sort_keys=True).encode())


def _list_readers(
    protocol: ClusteringProtocol[Params], params: Params, terms: Terms
) -> Iterator[Learns]:
    """Yield who learns what: by the protocol, and of what these terms release."""
    released = {} if terms.release is None else terms.release.readers
    for who, what in protocol.readers(params, terms.layout).items():
        yield Learns(who=who, what=f"{what} {released.get(who, '')}".strip())


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
        fields=tuple(_line(schema, field, plan) for field in schema.fields),
    )


def _line(schema: Schema, field: Field, plan: ColumnPlan | None) -> FieldLine:
    codes = ", ".join(sorted(schema.missing_codes(field) - {""}))
    values = [_range(field), f"no value is {codes}" if codes else ""]
    return FieldLine(
        name=field.name,
        title=field.title,
        unit=field.unit,
        form=_form(field),
        range="; ".join(filter(None, values)),
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


_ROLE: Final = re.compile(r"^(Contribution|Envelope)\b[^:.]*(:\s*|\.$)")
_WORDS: Final = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "yes or no",
    type(None): "none",
}
_ARRAYS: Final = {
    "float64": "numbers",
    "int64": "whole numbers",
    "uint64": "64-bit words",
    "uint8": "bytes",
}
_DIGEST: Final = "[0-9a-f]{64}"


def steps_of(terms: Terms) -> tuple[Step, ...]:
    """Return the stages of a session, in their order, known before anybody has joined.

    Those that a session of several runs repeats are there once.
    """
    n_runs = len(
        session_terms.runs_of(session_terms.check_terms(terms), terms.evaluation)
    )
    *asked, last = _stages(terms)
    stages = [*((stage, ()) for stage in asked), (last, last.results)]
    return tuple(_step(stage, results, several=n_runs > 1) for stage, results in stages)


def sent_kinds(terms: Terms) -> tuple[SentKind, ...]:
    """Return what parties of a session send, what somebody reads first."""
    stages = _stages(terms)
    found = [exchange.answer for stage in stages for exchange in stage.exchanges]
    found += [envelope for stage in stages for envelope in stage.envelopes]
    said = dict.fromkeys((record.reach, record.meaning) for record in found)
    return tuple(
        SentKind(meaning=meaning, reach=reach)
        for wanted in REACHES
        for reach, meaning in said
        if reach == wanted and meaning
    )


def _stages(terms: Terms) -> list[Stage]:
    params = session_terms.check_terms(terms)
    known = catalogue.protocol(terms.protocol.name)
    own = with_filling(terms, known.stages(params, terms.layout))
    n_runs = len(session_terms.runs_of(params, terms.evaluation))
    lasts = (own[-1],)
    last = build_closing(lasts, n_runs, least=1)
    return [build_opening(), *own, *profiles_stage(terms, lasts), last]


def _step(stage: Stage, results: Sequence[type[Record]], *, several: bool) -> Step:
    return Step(
        name=stage.name,
        each_run=several and stage.each_run,
        asked=tuple(map(_describe_round, stage.exchanges)),
        sealed=tuple(map(message, stage.envelopes)),
        results=tuple(map(message, results)),
    )


def _describe_round(exchange: Exchange) -> RoundKind:
    return RoundKind(
        task=exchange.task.kind,
        least=exchange.least,
        most=exchange.most,
        answer=message(exchange.answer),
    )


def message(record: type[Record]) -> Message:
    """Return what a kind of record holds, as it is declared."""
    return Message(
        kind=record.kind,
        sentence=_sentence(record),
        items=tuple(
            Item(name=name, form=form(field))
            for name, field in record.model_fields.items()
        ),
    )


def _sentence(record: type[Record]) -> str:
    """Return the first paragraph of a record's description, without its role."""
    told = inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0]
    told = _ROLE.sub("", " ".join(told.split()).replace("``", ""))
    return told[:1].upper() + told[1:]


def form(field: FieldInfo) -> str:
    """Return the declared form of a message's field, in words."""
    spec = next((item for item in field.metadata if isinstance(item, Spec)), None)
    if spec is not None:
        return _array(field.annotation, spec)
    if _DIGEST in repr(field.metadata):
        return "64 hex digits"
    return _words(field.annotation)


def _array(annotation: Any, spec: Spec) -> str:
    dtype = item_dtype(annotation)
    if len(spec.shape) == 1:
        return f"a list of {_ARRAYS[dtype.name]}"
    return f"a table of {_ARRAYS[dtype.name]}, {' × '.join(map(str, spec.shape))}"


def _words(annotation: Any) -> str:
    """Return a type in words; what is made of others goes by its parts."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):  # Annotated
        return _words(parts[0])
    if origin in {Union, types.UnionType}:
        return " or ".join(map(_words, parts))
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin in {list, tuple, set, frozenset}:
        return f"a list, each {_words(parts[0])}" if parts else "a list"
    if origin is dict:
        return f"by name, {_words(parts[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, Record):
        return f"{annotation.kind} ({', '.join(annotation.model_fields)})"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def show_risks(risks: Mapping[str, known.Risk]) -> tuple[Risk, ...]:
    """Return risks by level, each level worst first."""
    ordered = known.worst_first(risks).items()
    return tuple(
        Risk(
            code=code,
            sentence=risk.sentence,
            level=risk.level,
            harm=risk.harm,
            measured=risk.measured,
            remedy=risk.remedy,
            detail=risk.detail,
            # a sheet has those of its protocol in the words of the session
            readers=tuple(
                Learns(who=who, what=what)
                for who, what in risk.readers
                if code == BY_DESIGN
            ),
        )
        for level in known.RiskLevel
        for code, risk in ordered
        if risk.level is level
    )
