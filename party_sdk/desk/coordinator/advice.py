"""Which method: the questions of `coterie advise`, and what fits the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import MAX_GROUP_SLOTS
from coterie_pages.models import Learns
from coterie_pages.models.desk_coordinator import (
    AdvicePage,
    FitCard,
    NoFit,
    OtherAnswer,
)
from coterie_pages.models.fields import FormField, Option
from coterie_pages.models.frame import Banner
from coterie_pages.views.risks import show_risks
from party_sdk.advice.advice import (
    BEST,
    USUAL_COLUMNS,
    Fit,
    advise,
    format_params,
    situation_of,
)
from party_sdk.advice.advice_form import QUESTIONS
from party_sdk.advice.evidence import in_words
from party_sdk.advice.relaxed_answers import RelaxedAnswers, find_relaxed_answers
from party_sdk.desk.coordinator.context import ABOVE, parse_number, query_of
from party_sdk.desk.responses import Form, desk_of, render_page
from party_sdk.reports.report_parts import show_expected

ADVICE: Final = f"{ABOVE}/advice"
_LABELS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "partitioning": (
        "How is the data split?",
        {
            "horizontal": "other people at each party (horizontal)",
            "vertical": "other variables of the same people (vertical)",
            "mixed": "both (mixed)",
        },
    ),
    "parties": ("How many parties?", {}),
    "overlap": (
        "Do all parties hold exactly the same patients?",
        {"full": "yes, exactly the same", "partial": "no, only some in common"},
    ),
    "rounds": (
        "How often can all parties answer?",
        {"one": "once", "few": "a few times", "many": "as often as it takes"},
    ),
    "analyst_sees": (
        "What may the analyst work out, beside the result?",
        {
            "nothing": "nothing",
            "totals": "sums over all parties",
            "geometry": "how rows lie to each other",
        },
    ),
    "collusion": (
        "Might the analyst collude with one of the parties?",
        {},
    ),
    "data": ("What is the data?", {"counts": "counts of objects and items"}),
    "shape": ("Which clusters?", {}),
}
_CLUSTERS: Final = "clusters"
_USUAL_CLUSTERS: Final = 3
_SIZES: Final[Mapping[str, str]] = {
    "rows": "About how many rows do all parties have together?",
    "columns": "About how many columns?",
}


def get_advice(request: Request) -> Response:
    """Show the questions, and what fits once they are answered."""
    form = query_of(request)
    if not form.one("parties"):
        return render_page(request, AdvicePage(questions=tuple(_questions(form))))
    wrong, notice, said = {}, None, {}
    try:
        answers, clusters = _answers(form)
        said = _build_advice(request, answers, clusters, _sizes(form))
    except InvalidParameters as error:
        if error.field in {"parties", _CLUSTERS, *_SIZES}:
            wrong[error.field] = error.said
        else:
            notice = Banner(text=error.detail, good=False)
    page = AdvicePage(questions=tuple(_questions(form, wrong)), **said)
    return render_page(request, page, notice=notice)


def _answers(form: Form) -> tuple[dict[str, Any], int]:
    answers: dict[str, Any] = {}
    for name, question in QUESTIONS.items():
        given = form.one(name) or question.default
        if question.choices and given not in question.choices:
            raise InvalidParameters(f"{name} is one of {', '.join(question.choices)}.")
        answers[name] = given
    answers["parties"] = parse_number(answers["parties"].strip(), "parties", 2)
    if answers["parties"] >= MAX_GROUP_SLOTS:
        raise InvalidParameters(f"at most {MAX_GROUP_SLOTS - 1}.", field="parties")
    clusters = form.one(_CLUSTERS).strip() or str(_USUAL_CLUSTERS)
    return answers, parse_number(clusters, _CLUSTERS, 2)


def _sizes(form: Form) -> dict[str, int]:
    """Return the numbers of rows and columns that were said."""
    said = {name: form.one(name).strip() for name in _SIZES}
    return {name: parse_number(text, name, 1) for name, text in said.items() if text}


def _build_advice(
    request: Request,
    answers: Mapping[str, Any],
    clusters: int,
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    rows, columns = sizes.get("rows"), sizes.get("columns", USUAL_COLUMNS)
    situation = situation_of(answers, clusters, rows, columns)
    found, root = advise(situation), desk_of(request).root
    cards = [_card(fit, reason, answers, root) for fit, reason in found.with_reasons()]
    relaxed = [] if cards else find_relaxed_answers(situation)
    said = {**answers, _CLUSTERS: clusters, **sizes}
    return {
        "answered": True,
        "fits": tuple(cards[:BEST]),
        "more": tuple(cards[BEST:]),
        "relaxed": tuple(_other_answer(each, said, root) for each in relaxed),
        "others": tuple(
            NoFit(protocol=name, reasons=tuple(reasons))
            for name, reasons in found.others.items()
        ),
    }


def _other_answer(
    relaxed: RelaxedAnswers, said: Mapping[str, Any], root: str
) -> OtherAnswer:
    changes = []
    for question, answer in relaxed.answers.items():
        label, texts = _LABELS[question]
        changes.append(f"{label} {texts.get(answer, answer)}")
    query = urlencode({**said, **relaxed.answers})
    return OtherAnswer(
        answers=" ".join(changes),
        methods=tuple(map(", ".join, relaxed.methods[:BEST])),
        href=f"{root}{ADVICE}?{query}",
    )


def _card(fit: Fit, reason: str, answers: Mapping[str, Any], root: str) -> FitCard:
    way = fit.way
    return FitCard(
        protocol=fit.protocol,
        way=way.name,
        title=catalogue.protocol(fit.protocol).title,
        reason=reason,
        what_for=f"{way.data} data, {' or '.join(way.shapes)} clusters",
        analyst=way.analyst_sees.sentence,
        with_party=way.exposure_with_one_party.sentence,
        rounds=way.rounds.sentence,
        dial=way.dial,
        measured=in_words(fit.figures),
        large=(*fit.large, *fit.cautions),
        figures=show_expected(fit.figures),
        learns=tuple(Learns(who=who, what=what) for who, what in fit.learns.items()),
        risks=show_risks(fit.risks),
        stages=tuple(fit.stages),
        href=f"{root}{ABOVE}/new?{urlencode(list(_prefill_form(fit, answers)))}",
    )


def _prefill_form(fit: Fit, answers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the form of a new session is filled with."""
    yield "protocol", fit.protocol
    yield "partitioning", str(answers["partitioning"])
    yield "parties", str(answers["parties"])
    for name, text in format_params(fit.params):
        yield f"param.{name}", text


def _questions(
    form: Form, wrong: Mapping[str, str] | None = None
) -> Iterator[FormField]:
    wrong = wrong or {}
    for name, question in QUESTIONS.items():
        label, texts = _LABELS[name]
        options = tuple(
            Option(value=choice, text=texts.get(choice, choice))
            for choice in question.choices
        )
        yield FormField(
            name=name,
            label=label,
            kind="choice" if options else "number",
            options=options,
            required=True,
            value=form.one(name) or str(question.default or ""),
            wrong=wrong.get(name, ""),
        )
    yield FormField(
        name=_CLUSTERS,
        label="How many clusters, to begin with?",
        kind="number",
        required=True,
        value=form.one(_CLUSTERS) or str(_USUAL_CLUSTERS),
        wrong=wrong.get(_CLUSTERS, ""),
    )
    for name, label in _SIZES.items():
        yield FormField(
            name=name,
            label=label,
            kind="number",
            value=form.one(name),
            wrong=wrong.get(name, ""),
        )
