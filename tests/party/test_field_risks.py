"""Fields that show in rows up to a motion are named before anybody joins."""

from typing import Any

import pytest
from support.drawn_terms import drawn

from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.canonical import canonical_json
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout
from coterie_pages.models import TermsSheet
from coterie_pages.pages import render_html
from coterie_pages.terminal_text import page_lines
from coterie_pages.views.terms_sheet import sheet_of

ROWS = Layout.lattice(3)
SCHEMA = Schema(
    fields=(
        Field(name="dose", decimals=1, constraints=Constraints(minimum=0)),
        Field(name="age", type="integer"),
        Field(name="crp"),
        Field(name="smokes", type="boolean"),
        Field(name="ward", type="string", categories=("a", "b", "c")),
    )
)
UNKNOWN = Schema(fields=(Field(name="crp"), Field(name="bmi")))
IMPUTED = Preparation(missing="drop", fields=(Treatment(name="crp", missing="mean"),))
DROPPED = Preparation(missing="drop")


def sheet(
    params: Params,
    schema: Schema = SCHEMA,
    preparation: Preparation | None = DROPPED,
    layout: Layout = ROWS,
) -> TermsSheet:
    n_groups = layout.n_column_groups
    fields = schema.fields
    groups = (
        [schema]
        if n_groups == 1
        else [Schema(fields=fields[g::n_groups]) for g in range(n_groups)]
    )
    prepared = None if preparation is None else (preparation,) * n_groups
    terms = drawn(params, layout, dictionary=tuple(groups), preparation=prepared)
    return sheet_of(canonical_json(terms), terms, {})


def naming(said: tuple[str, ...], name: str) -> list[str]:
    return [sentence for sentence in said if repr(name) in sentence]


@pytest.mark.threat(144)
@pytest.mark.parametrize("protocol", [OmniFC, DataCollaboration])
def test_a_sheet_names_fields_rounded_or_with_few_values(protocol: Any) -> None:
    said = sheet(protocol(n_clusters=3)).cautions
    for name in ("dose", "age"):
        assert "may show the analyst" in "".join(naming(said, name))
    for name in ("smokes", "ward"):
        (sentence,) = naming(said, name)
        assert "leave out" in sentence.lower()
    assert not naming(said, "crp")


@pytest.mark.threat(144)
def test_a_sheet_names_imputed_fields_and_the_remedy() -> None:
    (sentence,) = naming(
        sheet(OmniFC(n_clusters=3), preparation=IMPUTED).cautions, "crp"
    )
    assert "missing 'drop'" in sentence


def test_a_logarithm_leaves_no_even_steps() -> None:
    curved = Preparation(missing="drop", fields=(Treatment(name="dose", log1p=True),))
    said = sheet(OmniFC(n_clusters=3), preparation=curved).cautions
    assert not naming(said, "dose")
    assert naming(said, "age")


def test_where_the_analyst_sees_no_geometry_nothing_is_named() -> None:
    assert sheet(LosslessFederated(n_clusters=3)).cautions == ()
    assert sheet(OmniFC(n_clusters=3), UNKNOWN, preparation=None).cautions == ()


@pytest.mark.parametrize("protocol", [DataCollaboration, OmniFC])
def test_ties_that_decide_spectral_clustering_are_said_before(protocol: Any) -> None:
    levels = Schema(fields=SCHEMA.fields[3:])
    for algorithm, schema, said in (
        ("spectral", levels, True),
        ("spectral", SCHEMA, False),
        ("kmeans", levels, False),
    ):
        params = protocol(n_clusters=3, algorithm=algorithm)
        assert ("equally near" in " ".join(sheet(params, schema).cautions)) == said


def test_of_many_fields_five_are_named() -> None:
    many = Schema(fields=tuple(Field(name=f"x{i}", type="integer") for i in range(40)))
    said = sheet(OmniFC(n_clusters=3), many).cautions
    assert sum(repr(f"x{i}") in " ".join(said) for i in range(40)) == 5
    assert "35 more" in " ".join(said)


@pytest.mark.threat(144)
def test_page_and_text_of_terms_show_what_the_sheet_names() -> None:
    shown = sheet(OmniFC(n_clusters=3), preparation=IMPUTED)
    html, text = render_html(shown), " ".join(" ".join(page_lines(shown)).split())
    for name in ("dose", "smokes", "crp"):
        (sentence,) = naming(shown.cautions, name)
        assert sentence in text
        assert name in html.partition("Warning")[2].partition("</dl>")[0]
