"""The client meets the vectors of spec/vectors, the invalid ones with their problem."""

from __future__ import annotations

import json
import subprocess

import numpy as np
from scipy.special import ndtri

from benchmarks.vectors.files import VECTORS
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.vectors import VectorCase, read_layers
from tests.interop.client_process import CLIENT, RUN

CASES = [case for layer in read_layers(VECTORS).values() for case in layer.cases]


def run(*words: str, given: str = "") -> str:
    done = subprocess.run(
        [*RUN, *words],
        cwd=CLIENT,
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def compare(case: VectorCase, answer: str) -> str:
    due = {"problem": case.problem} if case.problem else {"output": case.output}
    return find_difference(due, json.loads(answer), case.tolerance)


def test_each_case_has_its_outcome() -> None:
    asked = [json.dumps({"call": case.call, "input": case.input}) for case in CASES]
    answers = run("conformance/main.ts", given="\n".join(asked)).split("\n")[:-1]
    assert len(answers) == len(CASES) > 100
    wrong = {
        f"{case.call}: {case.name}": compare(case, answer)
        for case, answer in zip(CASES, answers, strict=True)
    }
    assert not {name: said for name, said in wrong.items() if said}


def test_a_call_that_is_not_known_is_said_to_be() -> None:
    answer = run("conformance/main.ts", given='{"call": "dance", "input": {}}')
    assert json.loads(answer) == {"unknown": "dance"}


def test_normal_numbers_are_those_of_scipy_in_both_tails() -> None:
    chances = np.concatenate([10.0 ** -np.arange(1, 16), np.linspace(0.01, 0.99, 99)])
    script = (
        "import { normalQuantile } from './src/numerics/normal-quantile.ts';"
        f"console.log(JSON.stringify({chances.tolist()}.map(normalQuantile)));"
    )
    found = json.loads(run("--input-type=module", "--eval", script))
    np.testing.assert_allclose(found, ndtri(chances), rtol=1e-13, atol=1e-15)
