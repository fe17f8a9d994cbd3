"""The advice page: the questions of `coterie advise`, and a comparison of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import MAX_GROUP_SLOTS
from coterie_pages.desk_models import FieldGroup
from coterie_pages.models import Banner, FormField, Screen
from party_sdk.advice import (
    COLUMNS,
    QUESTIONS,
    Fit,
    Question,
    Situation,
    advise,
    comparison_row,
    format_params,
)
from party_sdk.desk.coordinator.context import ABOVE, parse_number
from party_sdk.desk.responses import Form, desk_of, form_of, render_page

ADVICE: Final = f"{ABOVE}/advice"
_ROWS: Final = "rows"
_N_QUESTIONS: Final = 3


def get_advice(request: Request) -> Response:
    """Show the questions and, once they are answered, the methods that are suitable."""
    form = form_of(request)
    wrong, notice, advice = {}, None, {"answered": False}
    try:
        if form.get("parties"):
            advice = _build_advice(_parse_situation(form), desk_of(request).root)
    except InvalidParameters as error:
        if error.field in {"parties", _ROWS}:
            wrong[error.field] = error.message
        else:
            notice = Banner(text=error.detail)
    page = Screen("desk/advice.html.j2", **_question_fields(form, wrong), **advice)
    return render_page(request, page, notice=notice)


def _parse_situation(form: Form) -> Situation:
    answers: dict[str, Any] = {}
    for name, question in QUESTIONS.items():
        answer = form.get(name) or question.default
        if question.answers and answer not in question.answers:
            raise InvalidParameters(f"{name} is one of {', '.join(question.answers)}.")
        answers[name] = answer
    parties = parse_number(answers["parties"].strip(), "parties", 2)
    if parties >= MAX_GROUP_SLOTS:
        raise InvalidParameters(f"at most {MAX_GROUP_SLOTS - 1}.", field="parties")
    rows = form.get(_ROWS).strip()
    return Situation(
        partitioning=answers["partitioning"],
        parties=parties,
        distances=answers["distances"] == "yes",
        data=answers["data"],
        rows=parse_number(rows, _ROWS, 1) if rows else None,
    )


def _build_advice(situation: Situation, root: str) -> dict[str, Any]:
    advice = advise(situation)
    wider = {
        "partitioning": situation.partitioning,
        "parties": situation.parties,
        "distances": "yes",
        "data": situation.data,
        _ROWS: situation.rows or "",
    }
    return {
        "answered": True,
        "columns": COLUMNS,
        "legend": situation.legend,
        "rows": tuple(_build_fit_row(fit, situation, root) for fit in advice.fits),
        "wider": tuple(fit.name for fit in advice.with_distances),
        "wider_href": f"{root}{ADVICE}?{urlencode(wider)}",
        "others": dict(advice.unsuitable),
    }


def _build_fit_row(fit: Fit, situation: Situation, root: str) -> dict[str, Any]:
    prefilled = {
        "protocol": fit.protocol,
        "partitioning": situation.partitioning,
        "parties": str(situation.parties),
        **{f"param.{name}": text for name, text in format_params(fit.params)},
    }
    return {
        "cells": comparison_row(fit.protocol, fit.method, situation.partitioning),
        "warnings": fit.warnings,
        "href": f"{root}{ABOVE}/new?{urlencode(prefilled)}",
    }


def _question_fields(form: Form, wrong: Mapping[str, str]) -> dict[str, Any]:
    rows = Question("About how many rows do all parties have together?", {}, "")
    fields = [
        FormField(
            name=name,
            label=question.text,
            kind="choice" if question.answers else "number",
            options=dict(question.answers),
            required=name != _ROWS,
            default=question.default or "",
            value=form.get(name) or question.default or "",
            error=wrong.get(name, ""),
        )
        for name, question in {**QUESTIONS, _ROWS: rows}.items()
    ]
    more = FieldGroup(title="More about the data", fields=tuple(fields[_N_QUESTIONS:]))
    return {"questions": tuple(fields[:_N_QUESTIONS]), "more": more}
