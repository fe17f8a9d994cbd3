"""Measure what each reader learns about rows, and compare it with what is declared.

Of every example of every protocol, each role counts the independent numbers that it
reads of the rows of others, alone and over all rounds: of each row where columns are
split or rows are sent, else of all rows together. Who reads more than half as many as
there are unknown ones is declared a reader of rows, with a risk code of the worst level.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from support.readings import Equations, equations, has_hidden_answers, play_example

from clustering_protocols import catalogue
from clustering_protocols.contract import Disclosure, Example, Kind, Reader
from clustering_protocols.contract.disclosures import kinds_read_by
from clustering_protocols.terms.session_risks import Harm, RiskLevel
from clustering_protocols.terms.terms import Identities

NO_NUMBERS_OF_ROWS: Final = {
    "anchors": "images of anchors that no reader knows: numbers of the secret map"
}
"""Arrays that are no equations for rows, and why."""
NOT_OF_RANK: Final = {
    Kind.MEANS: "few numbers, known in the units of the variables",
    Kind.SUMS: "few numbers, known to be exact sums of chosen rows",
    Kind.PLACES: "of own rows; a party may know rows of others in that space",
    Kind.LABELS: "whole numbers, which take no unknown away",
    Kind.SIZES: "numbers of rows, rounded to fives: no equations for their values",
}
"""Kinds that are declared for another reason than how many numbers are read."""

# of module scope: the tests of one protocol come together, and share its sessions
every_protocol = pytest.mark.parametrize("name", catalogue.catalogue(), scope="module")


class Measured(NamedTuple):
    example: Example[Any]
    shown: frozenset[Disclosure]
    equations: list[Equations]
    reads_hidden: bool


@cache
def measured(name: str) -> list[Measured]:
    known = catalogue.protocol(name)
    return [
        Measured(
            example,
            known.disclosures(example.params, example.layout),
            list(equations(session, NO_NUMBERS_OF_ROWS)),
            not has_hidden_answers(session) or session.reads_hidden,
        )
        for example in known.reference().examples()
        for session in [play_example(example)]
    ]


def readers(of: Equations) -> frozenset[Reader]:
    """Return the readers of whom one is told what this role reads."""
    if not of.is_party:
        return frozenset({Reader.OUTSIDE})
    return frozenset({Reader.ALL, *([Reader.GROUP] if of.same_variables else [])})


def lacking(of: Equations, shown: frozenset[Disclosure]) -> frozenset[Kind]:
    if 2 * of.count <= of.unknowns:
        return frozenset()
    declared = frozenset().union(*(kinds_read_by(shown, each) for each in readers(of)))
    rows = frozenset({Kind.GEOMETRY, Kind.VALUES})
    if of.count < of.unknowns:
        return frozenset() if rows & declared else rows
    # whole numbers show in rows up to a motion; single columns and sums are as they are
    needed = rows if of.of_rows and not of.aligned else frozenset({Kind.VALUES})
    return needed - declared


def undeclared(
    name: str, less: Disclosure | None = None
) -> Iterator[tuple[Equations, frozenset[Kind]]]:
    """Yield what the examples of a protocol give, less a declaration, undeclared."""
    for each in measured(name):
        for of in each.equations:
            kinds = lacking(of, each.shown - {less})
            if kinds:
                yield of, kinds


@pytest.mark.threat(195)
@every_protocol
def test_what_readers_get_is_declared(name: str) -> None:
    assert measured(name), "a protocol has an example"
    assert all(each.reads_hidden for each in measured(name)), "or nothing is measured"
    assert list(undeclared(name)) == []


@pytest.mark.threat(195)
@every_protocol
def test_each_declaration_is_needed(name: str) -> None:
    """A declaration that is left out is missed, or declared for another reason."""
    declarations = frozenset().union(*(each.shown for each in measured(name)))
    for declaration in sorted(declarations):
        missed = any(undeclared(name, less=declaration))
        assert missed != (declaration.kind in NOT_OF_RANK), declaration


@pytest.mark.threat(195)
@every_protocol
def test_who_reads_values_is_named_by_a_code_of_the_worst_level(name: str) -> None:
    """Parties accept it; what the analyst reads stands in the code of the design too."""
    for each in measured(name):
        if not any(of.is_party and 2 * of.count > of.unknowns for of in each.equations):
            continue
        codes = catalogue.find_session_risks(
            each.example.params, each.example.layout, Identities()
        ).values()
        assert any(
            risk.harm is Harm.ROWS and risk.level is RiskLevel.OPTION for risk in codes
        ), each.example.params
