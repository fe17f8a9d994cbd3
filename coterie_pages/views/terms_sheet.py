"""Build the terms sheet of a session: parameters, variables, stages and risks in words."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from clustering_protocols import catalogue, result_warnings, session_terms
from clustering_protocols.contract import Stage
from clustering_protocols.engine.signatures import build_closing, build_opening
from clustering_protocols.engine.stages import add_preparation_stages, profile_stages
from clustering_protocols.records.arrays import Spec, item_dtype
from clustering_protocols.records.record import REACHES, Record
from clustering_protocols.secrecy.identities import fingerprint
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.captions import captioned_fields
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import SessionRequest, Terms
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
    names_by_key: Mapping[str, str],
    *,
    url: str = "",
    slot: str = "",
    you: NamedInstitution | None = None,
) -> TermsSheet:
    """Build the terms sheet of a session.

    text: the exact text of the terms, whose digest the sheet shows.
    terms: the parsed text.
    names_by_key: the names of institutions by public key, taken from trusted cards.
    url: the analyst's address.
    slot: the reader's slot; empty for a coordinator.
    you: the reader's own institution.

    Raises VersionMismatch or InvalidParameters if this release does not know the
    protocol, or computes other risks for these terms.
    """
    name = terms.protocol.name
    protocol, params = catalogue.protocol(name), session_terms.check_terms(terms)
    texts = dict(terms.about) | {"title": terms.title}
    for section, _, caption in captioned_fields(SessionRequest):
        if caption.group is None and getattr(terms, section) is not None:
            texts[caption.name] = getattr(terms, section).sentence
    released = {} if terms.release is None else terms.release.readers
    schemas = terms.dictionary or ()
    if slot and schemas:
        schemas = (schemas[terms.layout.slot(slot).column],)
    return TermsSheet(
        **texts,
        session=terms.session,
        digest=digest(text),
        consent=consent_digest(text, terms),
        url=url,
        coordinator=identify(terms.identities.coordinator, names_by_key),
        analyst=identify(terms.identities.analyst, names_by_key),
        slot=slot,
        you=you,
        protocol=name,
        protocol_title=protocol.title,
        summary=protocol.summarise(params, terms.layout),
        paper=protocol.paper,
        parameters=tuple(_parameter_lines(params, terms.evaluation)),
        places=tuple(_planned_slots(terms, names_by_key, slot, you)),
        learns=tuple(
            Learns(who=reader, what=f"{sentence} {released.get(reader, '')}".strip())
            for reader, sentence in protocol.readers(params, terms.layout).items()
        ),
        personal_data=protocol.personal_data(terms.layout),
        sent=sent_kinds(terms),
        categories=tuple(f.title or f.name for s in schemas for f in s.fields),
        risks=sort_risks(session_terms.risks_of_terms(terms)),
        steps=steps_of(terms),
        cautions=tuple(result_warnings.find_terms_warnings(terms)),
        dictionary=tuple(_dictionary_fields(terms, slot)),
        join_within=terms.deadlines.recruiting,
        answer_within=terms.deadlines.round,
        least_rows=terms.guards.minimum_rows,
        audit=audit_sentence(terms),
        versions=versions_of(terms),
    )


def consent_digest(text: bytes, terms: Terms) -> str:
    """Return the SHA-256 of everything that a party accepts, in hex.

    It covers the exact text of the terms, the sentence of every risk, and the kinds of
    messages. A release that words a risk differently therefore asks for consent again.
    """
    risks = session_terms.risks_of_terms(terms)
    content = {
        "terms": digest(text),
        "risks": {code: risk.sentence for code, risk in risks.items()},
        "sent": [[kind.reach, kind.meaning] for kind in sent_kinds(terms)],
    }
    return digest(json.dumps(content, sort_keys=True).encode())


def versions_of(terms: Terms) -> Versions:
    """Return the versions to print on a page about these terms."""
    return Versions(
        coterie=version("coterie"), protocol=terms.protocol.version, terms=terms.coterie
    )


def identify(
    key: str | None, names_by_key: Mapping[str, str]
) -> NamedInstitution | None:
    """Return the institution that a public key belongs to, or None if there is no key."""
    if key is None:
        return None
    name = names_by_key.get(key)
    return NamedInstitution(
        name=name or "", known=name is not None, fingerprint=fingerprint(key)
    )


def audit_sentence(terms: Terms) -> str:
    """Return a sentence on how many updates a party's audit of sums allows, or ''."""
    params, layout = session_terms.check_terms(terms), terms.layout
    runs = session_terms.params_per_run(params, terms.evaluation)
    sizes = catalogue.protocol(terms.protocol.name).sizing()
    updates_of_100, updates_of_1000 = (
        sizes.updates_that_fit(runs, layout, n) for n in (100, 1000)
    )
    if updates_of_100 is None:
        return ""
    return (
        f"Your audit allows at least {updates_of_100} updates if you have 100 rows, and at least "
        f"{updates_of_1000} if you have 1,000. 'sums_limit' sets how much the sums may determine."
    )


def _planned_slots(
    terms: Terms,
    names_by_key: Mapping[str, str],
    own_slot: str,
    you: NamedInstitution | None,
) -> Iterator[PlannedSlot]:
    for slot in terms.layout.slots:
        expected = identify(terms.identities.slots.get(slot.name), names_by_key)
        if expected is not None and you is not None and slot.name == own_slot:
            expected = you
        yield PlannedSlot.of(slot, expected=expected, own=slot.name == own_slot)


def _parameter_lines(
    params: BaseModel, runs: Evaluation | None, prefix: str = ""
) -> Iterator[ParameterLine]:
    """Yield a line for every parameter, with the n_clusters of all runs in one line."""
    for name, field in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield from _parameter_lines(value, None, f"{prefix}{name}.")
            continue
        usual = not field.is_required() and value == field.get_default(
            call_default_factory=True
        )
        value = to_jsonable_python(value)
        if runs is not None and name == "n_clusters":
            value = ", ".join(map(str, runs.n_clusters))
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        yield ParameterLine(
            name=f"{prefix}{name}",
            value=value,
            sentence=" ".join((field.description or "").split()),
            usual=usual,
        )


def _dictionary_fields(terms: Terms, own_slot: str) -> Iterator[DictionaryFields]:
    """Yield the data dictionary of each column group, starting with the reader's own."""
    own_column = terms.layout.slot(own_slot).column if own_slot else None
    groups = range(terms.layout.n_column_groups)
    for column in sorted(groups, key=lambda group: group != own_column):
        if terms.dictionary is None:
            return
        schema = terms.dictionary[column]
        plan = terms.plans[column] if terms.plans else None
        yield DictionaryFields(
            column=column,
            slots=terms.layout.column_group(column),
            own=column == own_column,
            fields=tuple(_field_line(schema, field, plan) for field in schema.fields),
        )


def _field_line(schema: Schema, field: Field, plan: ColumnPlan | None) -> FieldLine:
    codes = ", ".join(sorted(schema.missing_codes(field) - {""}))
    values = [_describe_range(field), f"missing if {codes}" if codes else ""]
    return FieldLine(
        name=field.name,
        title=field.title,
        unit=field.unit,
        form=_describe_value_type(field),
        range="; ".join(filter(None, values)),
        preparation=_describe_preparation(field, plan),
    )


def _describe_preparation(field: Field, plan: ColumnPlan | None) -> str:
    if field.role == "describe":
        return "only described in profiles, not clustered"
    if plan is None:
        return ""
    treatment = plan.preparation.of(field).sentence
    if field.is_ordinal:
        form = "the position of the level"
    elif field.is_category:
        form = "a column for each level"
    else:
        form = "0 or 1" if field.type == "boolean" else ""
    return ", ".join(filter(None, [form, treatment]))


def _describe_value_type(field: Field) -> str:
    if not field.is_category:
        return "yes or no" if field.type == "boolean" else field.type
    return "ordered levels" if field.is_ordinal else "levels"


def _describe_range(field: Field) -> str:
    if field.is_category:
        levels = ", ".join(field.labels[:_MOST_LEVELS])
        more = len(field.labels) - _MOST_LEVELS
        return f"{levels} and {more} more" if more > 0 else levels
    low, high = (
        f"{bound:g}" if isinstance(bound, float) else bound
        for bound in (field.constraints.minimum, field.constraints.maximum)
    )
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return f"from {low}" if high is None else f"up to {high}"
    return f"{low} to {high}"


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
    """Return the stages of a session in order, each once even if every run has it."""
    n_runs = len(
        session_terms.params_per_run(session_terms.check_terms(terms), terms.evaluation)
    )
    stages = _stages_of(terms)
    return tuple(
        Step(
            name=stage.name,
            each_run=n_runs > 1 and stage.each_run,
            asked=tuple(
                RoundKind(
                    task=exchange.task.kind,
                    least=exchange.least,
                    most=exchange.most,
                    answer=describe_message(exchange.answer),
                )
                for exchange in stage.exchanges
            ),
            sealed=tuple(map(describe_message, stage.envelopes)),
            results=tuple(
                map(describe_message, stage.results if stage is stages[-1] else ())
            ),
        )
        for stage in stages
    )


def sent_kinds(terms: Terms) -> tuple[SentKind, ...]:
    """Return the kinds of messages that parties send, first those that others can read."""
    stages = _stages_of(terms)
    records = [exchange.answer for stage in stages for exchange in stage.exchanges]
    records += [envelope for stage in stages for envelope in stage.envelopes]
    kinds = dict.fromkeys((record.reach, record.meaning) for record in records)
    return tuple(
        SentKind(meaning=meaning, reach=reach)
        for wanted_reach in REACHES
        for reach, meaning in kinds
        if reach == wanted_reach and meaning
    )


def _stages_of(terms: Terms) -> list[Stage]:
    params = session_terms.check_terms(terms)
    protocol = catalogue.protocol(terms.protocol.name)
    stages = add_preparation_stages(terms, protocol.stages(params, terms.layout))
    last_stages = (stages[-1],)
    closing = build_closing(last_stages, least=1)
    return [build_opening(), *stages, *profile_stages(terms, last_stages), closing]


def describe_message(record: type[Record]) -> Message:
    """Describe a record class as a message with its fields.

    The message's sentence is the first paragraph of the class's docstring, without the
    role that the docstring states.
    """
    text = inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0]
    text = _ROLE.sub("", " ".join(text.split()).replace("``", ""))
    return Message(
        kind=record.kind,
        sentence=text[:1].upper() + text[1:],
        items=tuple(
            Item(name=name, form=describe_field_type(field))
            for name, field in record.model_fields.items()
        ),
    )


def describe_field_type(field: FieldInfo) -> str:
    """Describe the declared type of a record's field in words."""
    spec = next((item for item in field.metadata if isinstance(item, Spec)), None)
    if spec is not None:
        return _describe_array(field.annotation, spec)
    if _DIGEST in repr(field.metadata):
        return "64 hex digits"
    return _describe_type(field.annotation)


def _describe_array(annotation: Any, spec: Spec) -> str:
    dtype = item_dtype(annotation)
    if len(spec.shape) == 1:
        return f"a list of {_ARRAYS[dtype.name]}"
    return f"a table of {_ARRAYS[dtype.name]}, {' × '.join(map(str, spec.shape))}"


def _describe_type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):  # typing.Annotated
        return _describe_type(parts[0])
    if origin in {Union, types.UnionType}:
        return " or ".join(map(_describe_type, parts))
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin in {list, tuple, set, frozenset}:
        return f"a list, each {_describe_type(parts[0])}" if parts else "a list"
    if origin is dict:
        return f"by name, {_describe_type(parts[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, Record):
        return f"{annotation.kind} ({', '.join(annotation.model_fields)})"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


_RISK_FIELDS: Final = ("sentence", "level", "measured", "remedy", "detail")


def sort_risks(risks: Mapping[str, session_risks.Risk]) -> tuple[Risk, ...]:
    """Return the risks sorted by level, with the worst risk of each level first."""
    ordered = session_risks.worst_first(risks).items()
    return tuple(
        Risk(
            code=code,
            **{name: getattr(risk, name) for name in _RISK_FIELDS},
        )
        for level in session_risks.RiskLevel
        for code, risk in ordered
        if risk.level is level
    )
