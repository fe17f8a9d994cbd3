"""Models of pages: they are JSON, and are drawn up from the terms themselves."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from lxml.html import fromstring
from support import page_models
from support.browsing import MOST_WORDS, page_to_sign
from support.examples import dealt

from clustering_protocols import catalogue, session_terms, simulation
from clustering_protocols.contract import Example
from clustering_protocols.engine.stages import load_session
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.sections import Evaluation, Retention
from clustering_protocols.terms.session_risks import risk_sentences
from clustering_protocols.terms.terms import About, Layout, Terms, read_terms
from coterie_pages.models import TermsSheet
from coterie_pages.pages import render_assessment, render_html
from coterie_pages.terminal_text import page_lines
from coterie_pages.views import terms_sheet
from coterie_pages.views.terms_sheet import consent_digest, sheet_of


def examples() -> Iterator[Any]:
    for name, protocol in catalogue.catalogue().items():
        for number, example in enumerate(protocol.reference().examples()):
            yield pytest.param(example, id=f"{name}-{number}")


def agreed(example: Example[Any]) -> tuple[bytes, bytes, Terms]:
    """The agreement of an example's session, the text of its terms, and the terms."""
    agreement = simulation.build_agreement(
        example.params,
        example.layout,
        dealt(example, 1).data,
        seed=1,
        session="s",
        **example.sections,
    )
    text = read_agreement(agreement)[0].terms.encode()
    return agreement, text, read_terms(text)


@pytest.mark.parametrize("example", list(examples()))
def test_a_sheet_tells_every_stage_and_message_of_the_engine(
    example: Example[Any],
) -> None:
    agreement, text, terms = agreed(example)
    sheet = sheet_of(text, terms, {})
    steps = {step.name: step for step in sheet.steps}
    _, stages = load_session(agreement)
    for stage in stages:
        repeated = re.sub(r"-\d+$", "", stage.name) if stage.run is not None else ""
        step = steps[repeated or stage.name]
        assert step.each_run == bool(repeated)
        told = {asked.answer.kind: asked.answer for asked in step.asked}
        told |= {message.kind: message for message in step.sealed}
        sent = {exchange.answer for exchange in stage.exchanges} | set(stage.envelopes)
        assert {record.kind for record in sent} == told.keys()
        for record in sent:
            names = [item.name for item in told[record.kind].items]
            assert names == list(record.model_fields)
    order = [step.name for step in sheet.steps]
    assert (order[0], order[-1]) == (stages[0].name, stages[-1].name)


@pytest.mark.parametrize("example", list(examples()))
def test_a_sheet_shows_every_risk_and_the_digest_of_the_terms(
    example: Example[Any],
) -> None:
    _, text, terms = agreed(example)
    sheet = sheet_of(text, terms, {})
    assert sheet.digest == digest(text)
    risks = session_terms.risks_of_terms(terms)
    assert {risk.code: risk.sentence for risk in sheet.risks} == risk_sentences(risks)
    shown = " ".join(" ".join(page_lines(sheet)).split())
    for code, risk in risks.items():
        assert shown.count(f"{risk.sentence} ({code})") == 1
    assert sheet.consent in shown


ABOUT = About(
    title="Subtypes of diabetes over three hospitals",
    purpose="Find subtypes of type 2 diabetes and compare how patients fare.",
    legal_basis="Cooperation contract of 3 March, ethics vote 24-118.",
    roles="The hospitals are joint controllers; the institute is processor.",
    contact="Study office, +49 30 1234.",
)


def told_sheet(example: Example[Any], about: About = ABOUT) -> TermsSheet:
    """The sheet of the first party, of terms that say what they are for."""
    update = {"about": about, "retention": Retention(session=30 * 86_400)}
    terms = agreed(example)[2].model_copy(update=update)
    return sheet_of(canonical_json(terms), terms, {}, slot=terms.layout.names[0])


@pytest.mark.parametrize("example", list(examples()))
def test_the_page_to_sign_has_at_most_700_words_and_each_risk_once(
    example: Example[Any],
) -> None:
    sheet = told_sheet(example)
    html = render_html(sheet)
    signed = page_to_sign(html)
    assert len(signed.split()) <= MOST_WORDS
    known = catalogue.protocol(catalogue.find_protocol_name(example.params))
    about = (ABOUT.purpose, ABOUT.legal_basis, ABOUT.roles, ABOUT.contact)
    personal = known.personal_data(example.layout)
    for said in (*about, personal, sheet.consent, "within 30 days of the end"):
        assert said in signed
    whole = " ".join(" ".join(fromstring(html).itertext()).split())
    assert sheet.digest in whole
    for risk in sheet.risks:
        assert risk.sentence in signed
        assert whole.count(risk.sentence) == 1
        assert risk.remedy in whole


@pytest.mark.parametrize(
    ("layout", "said", "unsaid"),
    [
        (Layout.lattice(3), "centroids of every round", "distance"),
        (Layout.lattice(1, 3), "secret order", "sums over several people"),
    ],
    ids=["rows", "columns"],
)
def test_the_page_to_sign_tells_of_no_other_split(
    layout: Layout, said: str, unsaid: str
) -> None:
    params = LosslessFederated(n_clusters=3)
    request = session_terms.build_request(params, layout, seed=1, about=ABOUT)
    text = session_terms.draw_up_terms("study", request)
    shown = page_to_sign(render_html(sheet_of(text, read_terms(text), {})))
    assert said in shown
    assert unsaid not in shown
    assert not re.search(r"split (rows|columns)", shown, re.IGNORECASE)


@pytest.mark.parametrize("readers", ["members", "everybody"])
def test_a_sheet_names_who_reads_profiles(readers: str) -> None:
    protocol = {"name": "llf", "params": {"n_clusters": 3}}
    told = {"protocol": protocol, "release": {"profiles": readers}}
    terms = read_terms(page_models.terms_text(**told))
    learned = {each.who.lower(): each.what for each in sheet_of(b"", terms, {}).learns}
    for who in ("analyst", "coordinator"):
        assert ("profile" in learned[who]) == (readers == "everybody")


def test_an_assessment_holds_all_risks_and_no_tag() -> None:
    [example, *_] = catalogue.protocol("llf").reference().examples()
    sheet = told_sheet(example, ABOUT.model_copy(update={"purpose": "<b>a | b</b>"}))
    made = render_assessment(sheet)
    assert "&lt;b>a \\| b&lt;/b>" in made
    for risk in sheet.risks:
        assert risk.sentence in made
        assert risk.code in made
    assert "[likelihood" not in made
    assert "[low, medium, high]" in made


def test_a_sheet_has_another_digest_where_terms_or_risks_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = page_models.terms_text()
    terms = read_terms(text)
    whole = consent_digest(text, terms)
    assert whole == sheet_of(text, terms, {}, slot="north").consent, (
        "one of all parties"
    )
    assert consent_digest(text + b" ", terms) != whole
    monkeypatch.setattr(terms_sheet, "sent_kinds", lambda _: ())
    assert consent_digest(text, terms) != whole


def test_a_sheet_tells_the_numbers_of_clusters_of_all_runs() -> None:
    text = page_models.terms_text()
    terms = read_terms(text)
    several = terms.model_copy(update={"evaluation": Evaluation(n_clusters=(2, 3))})
    for each, numbers in ((terms, "3"), (several, "2, 3")):
        told = {one.name: one.value for one in sheet_of(text, each, {}).parameters}
        assert told["n_clusters"] == numbers


def test_an_expected_institution_has_the_name_of_its_card() -> None:
    north, south, west = page_models.sheet().places
    assert north.own
    assert north.expected == page_models.sheet().you
    assert (south.expected.name, south.expected.known) == ("Institution 1", True)
    assert west.expected is None
    strangers = sheet_of(
        page_models.terms_text(), read_terms(page_models.terms_text()), {}
    )
    assert strangers.places[1].expected is not None
    assert not strangers.places[1].expected.known


def test_codes_that_stand_for_no_value_are_said() -> None:
    fields = [
        {"name": "room", "type": "integer", "missingValues": ["", "17"]},
        {"name": "born", "type": "date"},
        {"name": "age", "constraints": {"minimum": 0, "maximum": 120}},
    ]
    schema = Schema.model_validate({"fields": fields, "missingValues": ["1900-01-01"]})
    update = {"dictionary": (schema,), "preparation": None}
    terms = read_terms(page_models.terms_text()).model_copy(update=update)
    [group] = terms_sheet._dictionary_fields(terms, "")
    assert [field.range for field in group.fields] == [
        "missing if 17",
        "missing if 1900-01-01",
        "0 to 120; missing if 1900-01-01",
    ]


def test_what_becomes_of_a_field_is_said() -> None:
    [group] = page_models.sheet().dictionary
    lines = {field.name: field for field in group.fields}
    assert (lines["age"].form, lines["age"].range) == ("integer", "0 to 120")
    assert lines["ward"].range == "surgery, medicine, intensive care"
    assert lines["ward"].preparation == "a column for each level"
    assert lines["smoker"].form == "yes or no"
