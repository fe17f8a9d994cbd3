"""Each vector is what the product makes; tests/interop holds the client against them."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.vectors import __main__ as command, product
from benchmarks.vectors.checker import Answer, Checker, find_wrong
from benchmarks.vectors.contributions import find_difference
from benchmarks.vectors.files import BUILDERS, VECTORS
from benchmarks.vectors.form import SCHEMA, read_layers, read_sessions, write_schema
from benchmarks.vectors.sessions import PROTOCOLS, build_sessions
from clustering_protocols.common.errors import Malformed
from clustering_protocols.engine import packets

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


@pytest.mark.parametrize("layer", BUILDERS)
def test_a_file_has_the_cases_that_are_built(layer: str) -> None:
    built = [(case.call, case.name) for case in BUILDERS[layer]().cases]
    assert [(case.call, case.name) for case in LAYERS[layer].cases] == built, REMEDY


@pytest.mark.parametrize("protocol", PROTOCOLS)
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


def test_an_answer_where_a_refusal_is_due_is_wrong() -> None:
    (refused, *_) = [each for each in LAYERS["sums"].cases if each.problem]
    assert find_wrong(refused, {"output": {}})
    assert find_wrong(refused, {"problem": "malformed"})
    assert not find_wrong(refused, {"problem": refused.problem})


def test_a_party_that_goes_on_after_a_refusal_is_wrong() -> None:
    def forget(_: str, answer: Answer) -> Answer:
        """Answer a genuine task although the party has stopped."""
        return {"output": {}} if answer.get("problem") == "task-refused" else answer

    checker = Checker(program=Program(of_product, forget))
    wrong = [f.wrong for f in checker.check_sessions({"dummy": FILES["dummy"]})]
    assert (
        "the program continues, once the message comes as it should have been" in wrong
    )


@pytest.mark.parametrize("kind", ["digests", "share", "projections"])
def test_a_number_of_a_contribution_that_differs_is_found(kind: str) -> None:
    def change(_: str, answer: Answer) -> Answer:
        """Change each array by one, and each text to another."""
        given = (answer.get("output") or {}).get("contribution")
        if given is None:
            return answer
        packet = packets.read(base64.b64decode(given))
        if packet.header.record["kind"] != kind:
            return answer
        values = dict.fromkeys(packet.header.record["values"], "00" * 32)
        record = {**packet.header.record, "values": values}
        changed = replace(
            packet,
            header=packet.header.model_copy(update={"record": record}),
            arrays={name: each + 1 for name, each in packet.arrays.items()},
        )
        content = base64.b64encode(packets.encode(changed)).decode()
        return {"output": {"contribution": content}}

    recorded = FILES["dc"].model_copy(update={"sessions": FILES["dc"].sessions[:1]})
    checker = Checker(program=Program(of_product, change))
    found = [f for f in checker.check_sessions({"dc": recorded}) if f.wrong]
    assert {f.wrong.split(":")[0].split("[")[0] for f in found} <= {
        ".contribution.record.values.rows",
        ".contribution.record.values.columns",
        ".contribution.arrays.words.items",
        ".contribution.arrays.inner products",
    }
    assert found


def test_level_a_leaves_sums_and_other_levels_out() -> None:
    checker = Checker(program=Program(of_product), level="A")
    names = {each.file for each in checker.check_layers(LAYERS)}
    assert names == set(LAYERS) - {"sums", "alignment", "intersection", "linkage"}
    assert {each.file for each in checker.check_sessions(FILES)} == {"dummy"}


@pytest.mark.parametrize(("off", "is_wrong"), [(2**20, 0), (2**20 + 1, 1)])
def test_words_of_rounded_sums_may_be_a_few_units_off(off: int, is_wrong: int) -> None:
    def shift(call: str, answer: Answer) -> Answer:
        packet = _sent(call, answer)
        if packet is None or packet.header.record["kind"] != "scattered":
            return answer
        words = packet.arrays["words"] + np.uint64(off)
        moved = replace(packet, arrays={**packet.arrays, "words": words})
        sent = base64.b64encode(packets.encode(moved)).decode()
        return {"output": {"contribution": sent}}

    checker = Checker(program=Program(of_product, shift))
    found = list(checker.check_sessions({"llf": FILES["llf"]}))
    steps = [step for s in FILES["llf"].sessions for step in s.steps if step.units]
    sent = [_sent("step", {"output": step.output}) for step in steps]
    n = sum(p is not None and p.header.record["kind"] == "scattered" for p in sent)
    assert n
    assert sum(bool(each.wrong) for each in found) == n * is_wrong


def test_words_of_another_dtype_are_no_words_nearby() -> None:
    def sign(call: str, answer: Answer) -> Answer:
        packet = _sent(call, answer)
        if packet is None or packet.header.record["kind"] != "share":
            return answer
        words = np.full(packet.arrays["words"].shape, -1, dtype=np.int64)
        other = replace(packet, arrays={**packet.arrays, "words": words})
        sent = base64.b64encode(packets.encode(other)).decode()
        return {"output": {"contribution": sent}}

    checker = Checker(program=Program(of_product, sign))
    found = list(checker.check_sessions({"llf": FILES["llf"]}))
    assert [each.wrong for each in found if "dtype" in each.wrong]


LIAR = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    known = asked["call"] in {"tag", "lp"}
    said = {"output": {"tag": "7"}} if known else {"unknown": asked["call"]}
    print(json.dumps(said), flush=True)
"""


def test_a_report_names_section_case_and_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        command.main(["check", "--level", "A", "--", sys.executable, "-c", LIAR]) == 5
    )
    said = capsys.readouterr().out
    assert "section 10, primitives / a tag of three words, tag: " in said
    assert "'7' came" in said
    assert " of unknown calls were left out: agreement (" in said


def test_a_program_that_ends_without_an_answer_is_named() -> None:
    with pytest.raises(Malformed, match="ended without an answer"):
        command.check([sys.executable, "-c", "pass"])


def _sent(call: str, answer: Answer) -> packets.Packet | None:
    if call != "step" or "output" not in answer:
        return None
    return packets.read(base64.b64decode(answer["output"]["contribution"]))
