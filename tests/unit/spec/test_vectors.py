"""Each vector is the product's; tests/system/interop holds the client against them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.vectors import product
from benchmarks.vectors.checker import Answer, Checker
from benchmarks.vectors.contributions import find_difference
from benchmarks.vectors.form import (
    SCHEMA,
    VECTORS,
    read_layers,
    read_sessions,
    write_schema,
)
from benchmarks.vectors.layers import BUILDERS
from benchmarks.vectors.sessions import PROTOCOLS, build_sessions

REMEDY = "Run: python -m benchmarks.vectors"
LAYERS = read_layers(VECTORS)
FILES = read_sessions(VECTORS)


class Program:
    """A program in this process; ``change`` is what it does to its answers."""

    def __init__(
        self,
        answer: Callable[[str, dict[str, Any]], Answer],
        change: Callable[[str, Answer], Answer] = lambda _, answer: answer,
    ) -> None:
        self._answer, self._change = answer, change

    def ask(self, call: str, given: dict[str, Any]) -> Answer:
        return self._change(call, self._answer(call, given))


def of_product(call: str, given: dict[str, Any]) -> Answer:
    output, problem = product.answer(call, given)
    return {"problem": problem} if problem else {"output": output}


@pytest.mark.parametrize("layer", BUILDERS)
def test_each_case_has_its_outcome(layer: str) -> None:
    checker = Checker(program=Program(of_product))
    for found in checker.check_layers({layer: LAYERS[layer]}):
        assert not found.wrong, found.sentence


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_session_goes_as_it_was_recorded(protocol: str) -> None:
    checker = Checker(program=Program(of_product))
    found = list(checker.check_sessions({protocol: FILES[protocol]}))
    sessions = FILES[protocol].sessions
    assert len(found) == sum(len(s.steps) + len(s.refusals) for s in sessions)
    for each in found:
        assert not each.wrong, each.sentence


N_CASES = {
    "primitives": 24,
    "roster": 26,
    "records": 39,
    "transcript": 21,
    "sums": 15,
    "envelopes": 14,
    "alignment": 23,
    "linkage": 21,
}


@pytest.mark.parametrize("layer", BUILDERS)
def test_a_file_has_the_cases_that_are_built(layer: str) -> None:
    """Some builders restate the cases of the file, so their number is compared too."""
    assert len(LAYERS[layer].cases) == N_CASES[layer]
    built = [(case.call, case.name) for case in BUILDERS[layer]()]
    assert [(case.call, case.name) for case in LAYERS[layer].cases] == built, REMEDY


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.quick(2)
def test_a_file_has_the_sessions_that_are_built(protocol: str) -> None:
    built, kept = build_sessions(protocol), FILES[protocol]
    for new, old in zip(built.sessions, kept.sessions, strict=True):
        names = [step.name for step in new.steps], [r.name for r in new.refusals]
        assert names == (
            [step.name for step in old.steps],
            [r.name for r in old.refusals],
        ), REMEDY
        begun = [each.steps[0].model_dump() for each in (old, new)]
        # tables of examples are computed, and last bits differ between machines
        assert not find_difference(*begun, tolerance=1e-12), REMEDY


def test_files_are_of_the_schema_that_lies_beside_them() -> None:
    import jsonschema  # it compiles the grammar of addresses: a second and more

    assert (VECTORS / SCHEMA).read_text() == write_schema(), REMEDY
    schema = json.loads(write_schema())
    for path in VECTORS.rglob("*.json"):
        if path.name != SCHEMA:
            jsonschema.validate(json.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"vectors": 2, "cases": []}, schema)
