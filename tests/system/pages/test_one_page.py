"""The page to sign: at most 700 words, of this session alone, and an assessment."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import html
from support.examples import begun

from clustering_protocols import catalogue, session_terms, simulation
from clustering_protocols.contract import Example
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.canonical import canonical_json
from clustering_protocols.terms.sections import Retention
from clustering_protocols.terms.terms import About, Layout, Terms
from coterie_pages.models import TermsSheet
from coterie_pages.pages import assessment, page
from coterie_pages.views.terms_sheet import sheet_of
from tests.system.pages.printing import MOST_WORDS, page_to_sign

ABOUT = About(
    title="Subtypes of diabetes over three hospitals",
    purpose="Find subtypes of type 2 diabetes and compare how patients fare.",
    legal_basis="Cooperation contract of 3 March, ethics vote 24-118.",
    roles="The hospitals are joint controllers; the institute is processor.",
    contact="Study office, +49 30 1234.",
)
EXAMPLES = [
    pytest.param(example, id=f"{name}-{place}")
    for name, known in catalogue.catalogue().items()
    for place, example in enumerate(known.reference().examples())
]


def terms_of(example: Example[Any]) -> Terms:
    terms = begun(example, 3, simulation.Session).session.terms
    retention = Retention(session=30 * 86_400)
    return terms.model_copy(update={"about": ABOUT, "retention": retention})


def sheet(terms: Terms) -> TermsSheet:
    slot = terms.layout.names[0]
    url = "https://analyst.example.org"
    return sheet_of(canonical_json(terms), terms, {}, url=url, slot=slot)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_has_at_most_700_words(example: Example[Any]) -> None:
    terms = terms_of(example)
    shown = page_to_sign(page(sheet(terms)))
    assert len(shown.split()) <= MOST_WORDS
    for said in (ABOUT.purpose, ABOUT.legal_basis, ABOUT.roles, ABOUT.contact):
        assert said in shown
    assert "within 30 days of the end" in shown
    known = catalogue.protocol(terms.protocol.name)
    assert known.personal_data(terms.layout) in shown
    assert sheet(terms).consent in shown


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_risk_stands_on_it_once(example: Example[Any]) -> None:
    made = sheet(terms_of(example))
    text = " ".join(" ".join(html.fromstring(page(made)).itertext()).split())
    for risk in made.risks:
        assert risk.sentence in page_to_sign(page(made))
        assert text.count(risk.sentence) == 1


@pytest.mark.parametrize(
    ("layout", "said", "unsaid"),
    [
        (Layout.lattice(3), "centroids of every round", "distance"),
        (Layout.lattice(1, 3), "secret order", "sums over several people"),
    ],
    ids=["rows", "columns"],
)
def test_the_page_tells_of_no_other_split(
    layout: Layout, said: str, unsaid: str
) -> None:
    request = session_terms.build_request(
        LosslessFederated(n_clusters=3), layout, seed=1, about=ABOUT
    )
    from clustering_protocols.terms.terms import read_terms

    text = session_terms.draw_up("study", request)
    shown = page_to_sign(page(sheet_of(text, read_terms(text), {})))
    assert said in shown
    assert unsaid not in shown
    assert not re.search(r"split (rows|columns)", shown, re.IGNORECASE)


def test_an_assessment_holds_all_risks_and_no_tag() -> None:
    [example, *_] = catalogue.protocol("llf").reference().examples()
    terms = terms_of(example)
    about = ABOUT.model_copy(update={"purpose": "<b>a | b</b>"})
    made = assessment(sheet(terms.model_copy(update={"about": about})))
    assert "&lt;b>a \\| b&lt;/b>" in made
    for risk in sheet(terms).risks:
        assert risk.sentence in made
        assert risk.code in made
    assert "[likelihood" not in made
    assert "[low, medium, high]" in made
