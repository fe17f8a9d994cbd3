"""Layouts, terms, agreements, risks in terms, and the list of problems."""

import json
import os
import pickle
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common import errors
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    Malformed,
    VersionMismatch,
)
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import canonical_json
from clustering_protocols.terms.terms import (
    Layout,
    SessionRequest,
    Slot,
    Terms,
    read_terms,
)

DEFAULTS = Path(__file__).with_name("defaults.json")

# Layouts


def layout(*cells: tuple[str, int, int]) -> Layout:
    return Layout(slots=tuple(Slot(name=n, row=r, column=c) for n, r, c in cells))


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [("a", 0, 1), ("b", 0, 0)],
        [("a", 1, 0), ("b", 0, 0)],
        [("a", 0, 0), ("b", 0, 0)],
        [("a", 0, 0), ("a", 0, 1)],
        [("a", 0, 0), ("b", 2, 0)],
        [("a", 1, 0)],
        [("a", 0, 0), ("b", 0, 2)],
        [("a", -1, 0), ("b", 0, 0)],
        [("a", 0, 0), ("b", 10_000, 0)],
        [(f"s{row}", row, 0) for row in range(1001)],
    ],
    ids=lambda cells: str(cells)[:40],
)
def test_a_layout_out_of_order_with_doubles_or_gaps_is_refused(
    cells: list[tuple[str, int, int]],
) -> None:
    with pytest.raises(ValidationError):
        layout(*cells)


@pytest.mark.parametrize(
    "name", ["", "A", "-a", ".a", "a/b", "a b", "ä", "a\n", "a" * 64]
)
def test_a_slot_with_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Slot(name=name, row=0, column=0)


# Canonical JSON


class Text(BaseModel):
    b: str = ""
    a: dict[str, Any] = {}


WHOLE = st.integers(1 - 2**53, 2**53 - 1)


@given(text=st.text(), tree=st.dictionaries(st.text(), WHOLE | st.text()))
def test_canonical_json_is_read_back_as_its_text_in_nfc(
    text: str, tree: dict[str, Any]
) -> None:
    written = canonical_json(Text(b=text, a=tree))
    read = json.loads(written)

    def nfc(value: Any) -> Any:
        return unicodedata.normalize("NFC", value) if isinstance(value, str) else value

    assert read["b"] == nfc(text)
    assert read["a"] == {nfc(key): nfc(value) for key, value in tree.items()}


@pytest.mark.parametrize("value", [2**53, -(2**60), "\ud800"])
def test_what_readers_of_json_understand_differently_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameters, match="2\\^53"):
        canonical_json(Text(a={"x": value}))


# Terms


def proposal(**changes: Any) -> SessionRequest:
    proposed = {
        "protocol": "dummy",
        "params": {},
        "layout": Layout.lattice(2),
        "seed": 7,
    } | changes
    choice = {"name": proposed.pop("protocol"), "params": proposed.pop("params")}
    return SessionRequest.model_validate({**proposed, "protocol": choice})


def terms(**changes: Any) -> Terms:
    return read_terms(session_terms.draw_up_terms("s", proposal())).model_copy(
        update=changes
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protocol": "unknown"}, "Known protocols: "),
        ({"params": {"n_clusters": 0}}, "n_clusters"),
        ({"params": {"surplus": 1}}, "surplus"),
        ({"params": {"fail_at": "secret"}}, "fail_at"),
        ({"protocol": "dc"}, "n_clusters"),
        ({"identities": {"slots": {"r9c9": "ab" * 32}}}, "r9c9"),
    ],
)
def test_an_unfit_proposal_is_refused_with_its_field_name(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParameters) as refused:
        session_terms.draw_up_terms("s", proposal(**changes))
    assert said in refused.value.detail
    assert "secret" not in refused.value.detail


def test_what_people_read_is_written_where_it_is_said() -> None:
    about = {"title": "T", "purpose": "P", "legal_basis": "L", "contact": "C"}
    places = {"slots": [{"name": "a", "row": 0, "column": 0, "title": "St. Mary's"}]}
    written = session_terms.draw_up_terms("s", proposal(about=about, layout=places))
    assert json.loads(written)["about"] == about
    assert json.loads(written)["layout"] == places
    assert read_terms(written).layout.slot("a").title == "St. Mary's"
    assert canonical_json(read_terms(written)) == written


# Parameters: what differs from the defaults

every_protocol = pytest.mark.parametrize("name", catalogue.catalogue())


@every_protocol
def test_a_reader_fills_in_the_defaults(name: str) -> None:
    known = catalogue.protocol(name)
    usual = catalogue.default_values(known.params)
    for example in known.reference().examples():
        written = catalogue.find_changed_params(example.params)
        assert catalogue.parse_params(name, written) == example.params
        assert all(usual.get(key, ...) != value for key, value in written.items())
        assert example.params.model_dump(mode="json") == usual | written


@every_protocol
def test_a_changed_default_needs_a_new_protocol_version(name: str) -> None:
    """Terms that were drawn up before would mean something else without one."""
    known = catalogue.protocol(name)
    found = {
        "version": known.version,
        "defaults": catalogue.default_values(known.params),
    }
    recorded = json.loads(DEFAULTS.read_text())
    is_raised = known.version > recorded.get(name, {}).get("version", 0)
    if os.environ.get("COTERIE_WRITE_DEFAULTS") == "1" and is_raised:
        recorded[name] = json.loads(json.dumps(found))
        DEFAULTS.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    remedy = f"raise 'version' of {name!r} if it is released, and run: make generated"
    assert recorded.get(name) == json.loads(json.dumps(found)), remedy


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_terms_of_another_version_are_a_version_mismatch(version: int) -> None:
    with pytest.raises(VersionMismatch):
        read_terms(canonical_json(terms(coterie=version)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        canonical_json(terms())[:-1],
        canonical_json(terms()) + b" x",
        canonical_json(terms()).replace(b'"seed":7', b'"seed":-1'),
        canonical_json(terms()).replace(b'"seed":7', b'"seed":9007199254740992'),
        canonical_json(terms()).replace(b'"seed":7', b'"seed":7,"surplus":1'),
        canonical_json(terms()).replace(b'"session":"s"', b'"session":"../s"'),
        canonical_json(terms()).replace(b'"minimum_rows":10', b'"minimum_rows":0'),
        canonical_json(terms()).replace(b'"round":86400', b'"round":0'),
    ],
)
def test_bytes_that_are_not_terms_are_malformed(content: bytes) -> None:
    assert content != canonical_json(terms())
    with pytest.raises(Malformed, match="These bytes are not terms"):
        read_terms(content)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"terms":"{}","roster":[]}'])
def test_bytes_that_are_not_an_agreement_are_malformed(content: bytes) -> None:
    with pytest.raises(Malformed, match=r"not (an agreement|terms)\."):
        read_agreement(content)


def with_protocol(**changes: Any) -> Terms:
    return terms(protocol=terms().protocol.model_copy(update=changes))


def test_terms_of_another_protocol_or_version_are_refused() -> None:
    for version in (0, 1, 3):
        with pytest.raises(VersionMismatch, match="'dummy'"):
            session_terms.check_terms(with_protocol(version=version))
    for changes in ({"params": {"n_clusters": 101}}, {"name": "unknown"}):
        with pytest.raises(InvalidParameters):
            session_terms.check_terms(with_protocol(**changes))


@pytest.mark.parametrize(
    "risks",
    [
        (),
        ("dummy.by-design",),
        ("house.open-slot",),
        ("house.open-slot", "dummy.by-design"),
        ("dummy.by-design", "dummy.by-design", "house.open-slot"),
    ],
)
def test_terms_with_other_risks_than_implied_are_refused(
    risks: tuple[str, ...],
) -> None:
    with pytest.raises(InvalidParameters, match="risks"):
        session_terms.check_terms(terms(risks=risks))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("dummy.something-else", "is not known.* newer release"),
        ("house.something-else", "is not known.* newer release"),
        *(
            (code, "is of another protocol")
            for code in ("dc.by-design", "other", "a.b")
        ),
    ],
)
def test_a_risk_that_has_no_sentence_here_is_refused(code: str, said: str) -> None:
    """No package is looked for, let alone imported, because terms name it."""
    with pytest.raises(VersionMismatch, match=f"'{code}' {said}"):
        session_terms.check_terms(terms(risks=(*terms().risks, code)))


# Identities

KEY, OTHER = "ab" * 32, "cd" * 32


@pytest.mark.parametrize(
    ("slots", "is_open"),
    [
        ({}, True),
        ({"r1c1": KEY}, True),
        ({"r1c1": KEY, "r2c1": OTHER}, False),
        ({"r1c1": KEY, "r2c1": KEY}, False),
    ],
)
def test_a_slot_without_an_expected_institution_is_a_risk(
    slots: dict[str, str], *, is_open: bool
) -> None:
    drawn = read_terms(
        session_terms.draw_up_terms("s", proposal(identities={"slots": slots}))
    )
    assert ("house.open-slot" in drawn.risks) == is_open
    session_terms.check_terms(drawn)
    lying = [c for c in drawn.risks if c != "house.open-slot"]
    if is_open:
        with pytest.raises(InvalidParameters, match="risks"):
            session_terms.check_terms(drawn.model_copy(update={"risks": tuple(lying)}))


@pytest.mark.parametrize(
    "identities",
    [
        {"slots": {"r3c1": KEY}},
        {"slots": {"r1c1": KEY[1:]}},
        {"slots": {"r1c1": KEY.upper()}},
        {"coordinator": "key"},
        {"coordinator": KEY, "auditor": KEY},
    ],
)
def test_identities_of_another_form_or_of_no_slot_are_refused(
    identities: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        Terms.model_validate({**terms().model_dump(), "identities": identities})


# Problems and exceptions


def classes() -> list[type[CoterieError]]:
    return [
        item
        for item in vars(errors).values()
        if isinstance(item, type)
        and issubclass(item, CoterieError)
        and item is not CoterieError
    ]


def test_problems_and_exceptions_correspond_one_to_one() -> None:
    assert Counter(known.problem for known in classes()) == Counter(Problem)


@pytest.mark.parametrize("problem", Problem)
def test_an_error_is_that_of_its_problem_in_text_and_in_another_process(
    problem: Problem,
) -> None:
    error = CoterieError.of(problem, "The detail.")
    assert error.problem is problem
    assert type(error).__name__ == problem.name.title().replace("_", "")
    assert Problem.from_slug(problem.slug) is Problem.from_slug(problem.urn) is problem
    assert str(error) == f"{problem.title}: The detail. {problem.remedy}"
    assert problem.title[-1].isalnum()
    assert problem.remedy.endswith(".")
    error.cells = ("line 3: the cell",)
    arrived = pickle.loads(pickle.dumps(error))
    assert (type(arrived), vars(arrived)) == (type(error), vars(error))
