"""The stages of a session in words: what is sent, in which form, and to whom."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Sequence
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from clustering_protocols import catalogue, session_terms
from clustering_protocols.contract import Exchange, Stage
from clustering_protocols.engine.signatures import build_closing, build_opening
from clustering_protocols.engine.stages import profiles_stage, with_filling
from clustering_protocols.records.arrays import Spec, item_dtype
from clustering_protocols.records.record import REACHES, Record
from clustering_protocols.terms.terms import Terms
from coterie_pages.models import Item, Message, RoundKind, SentKind, Step

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
