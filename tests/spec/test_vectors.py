"""Each vector is what the product makes, and what the independent party makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from benchmarks.vectors import product
from benchmarks.vectors.files import BUILDERS, VECTORS
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.vectors import SCHEMA, VectorCase, read_layers, write_schema
from tests.spec.independent import __main__ as independent

REMEDY = "Run: python -m benchmarks.vectors"
LAYERS = read_layers(VECTORS)


def of_product(case: VectorCase) -> dict[str, Any]:
    output, problem = product.answer(case.call, case.input)
    return {"problem": problem} if problem else {"output": output}


def of_independent(case: VectorCase) -> dict[str, Any]:
    return independent.answer({"call": case.call, "input": case.input})


@pytest.mark.parametrize("answer", [of_product, of_independent])
@pytest.mark.parametrize("layer", BUILDERS)
def test_each_case_has_its_outcome(
    layer: str, answer: Callable[[VectorCase], dict[str, Any]]
) -> None:
    for case in LAYERS[layer].cases:
        due = {"problem": case.problem} if case.problem else {"output": case.output}
        found = json.loads(json.dumps(answer(case)))
        wrong = find_difference(due, found, case.tolerance)
        assert not wrong, f"{case.call}: {case.name}: {wrong}"


@pytest.mark.parametrize("layer", BUILDERS)
def test_a_file_has_the_cases_that_are_built(layer: str) -> None:
    built = [(case.call, case.name) for case in BUILDERS[layer]().cases]
    assert [(case.call, case.name) for case in LAYERS[layer].cases] == built, REMEDY


def test_files_are_of_the_schema_that_lies_beside_them() -> None:
    assert (VECTORS / SCHEMA).read_text() == write_schema(), REMEDY
    schema = json.loads(write_schema())
    for path in VECTORS.rglob("*.json"):
        if path.name != SCHEMA:
            jsonschema.validate(json.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"vectors": 2, "cases": []}, schema)
