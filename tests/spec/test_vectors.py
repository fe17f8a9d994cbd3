"""Each vector is what the product makes, and what the independent party makes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.vectors import product
from benchmarks.vectors.files import BUILDERS, VECTORS
from benchmarks.vectors.sessions import PROTOCOLS, build_sessions
from clustering_protocols.engine import packets
from party_sdk.conformance.checker import Checker, find_wrong
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.programs import Answer
from party_sdk.conformance.vectors import (
    SCHEMA,
    read_layers,
    read_sessions,
    write_schema,
)
from tests.spec.independent import __main__ as independent

REMEDY = "Run: python -m benchmarks.vectors"
LAYERS = read_layers(VECTORS)
FILES = read_sessions(VECTORS)
SPOKEN = {
    "dummy": "AD",
    "dc": "BDE",
    "llf": "CDE",
    "fccm": "E",
    "omnifc": "E",
    "pqmds": "E",
}
"""Protocols that the independent party has, and the levels of their sessions."""


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


def of_independent(call: str, given: dict[str, Any]) -> Answer:
    return independent.answer({"call": call, "input": given})


@pytest.mark.parametrize("answer", [of_product, of_independent])
@pytest.mark.parametrize("layer", BUILDERS)
def test_each_case_has_its_outcome(
    layer: str, answer: Callable[[str, dict[str, Any]], Answer]
) -> None:
    checker = Checker(program=Program(answer))
    for found in checker.check_layers({layer: LAYERS[layer]}):
        assert not found.left_out, found.call
        assert not found.wrong, found.sentence


@pytest.mark.parametrize(
    ("answer", "protocol", "levels"),
    [
        *((of_product, protocol, "ABCDE") for protocol in PROTOCOLS),
        *((of_independent, *spoken) for spoken in SPOKEN.items()),
    ],
)
def test_each_session_goes_as_it_was_recorded(
    answer: Callable[[str, dict[str, Any]], Answer], protocol: str, levels: str
) -> None:
    sessions = [s for s in FILES[protocol].sessions if s.level in levels]
    file = FILES[protocol].model_copy(update={"sessions": sessions})
    checker = Checker(program=Program(answer), level="E")
    found = list(checker.check_sessions({protocol: file}))
    steps = sum(len(s.steps) + len(s.refusals) for s in sessions)
    assert len(found) == steps
    for each in found:
        assert not each.left_out, each.call
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


@pytest.mark.parametrize(
    ("session", "change", "wrong"),
    [
        ("fewer centres than rows", lambda codes: codes[::-1], ""),
        ("fewer centres than rows", lambda codes: codes + _ramp(codes), "different"),
        ("fewer centres than rows", lambda codes: codes[:, 1:], ".shape"),
        ("fewer centres than rows", lambda codes: codes * 1e101, ".items"),
        ("in the middle", lambda codes: codes[::-1], ".items"),
        ("codes with noise", lambda codes: codes + _ramp(codes), ""),
    ],
)
def test_codes_are_a_choice_within_bounds(
    session: str, change: Callable[[Any], Any], wrong: str
) -> None:
    def choose(call: str, answer: Answer) -> Answer:
        packet = _sent(call, answer)
        if packet is None or packet.header.record["kind"] != "codes":
            return answer
        other = replace(packet, arrays={"codes": change(packet.arrays["codes"])})
        sent = base64.b64encode(packets.encode(other)).decode()
        return {"output": {"contribution": sent}}

    (kept,) = [s for s in FILES["pqmds"].sessions if s.name == session]
    file = FILES["pqmds"].model_copy(update={"sessions": [kept]})
    checker = Checker(program=Program(of_product, choose))
    found = [f.wrong for f in checker.check_sessions({"pqmds": file}) if f.wrong]
    assert len(found) == bool(wrong)
    assert all(wrong in each for each in found)


def _ramp(codes: Any) -> Any:
    return np.arange(len(codes))[:, None]


@pytest.mark.parametrize(
    ("protocol", "kind"), [("fccm", "share"), ("llf", "scattered")]
)
@pytest.mark.parametrize(("off", "is_wrong"), [(2**20, 0), (2**20 + 1, 1)])
def test_words_of_rounded_sums_may_be_a_few_units_off(
    protocol: str, kind: str, off: int, is_wrong: int
) -> None:
    def shift(call: str, answer: Answer) -> Answer:
        packet = _sent(call, answer)
        if packet is None or packet.header.record["kind"] != kind:
            return answer
        words = packet.arrays["words"] + np.uint64(off)
        moved = replace(packet, arrays={**packet.arrays, "words": words})
        sent = base64.b64encode(packets.encode(moved)).decode()
        return {"output": {"contribution": sent}}

    checker = Checker(program=Program(of_product, shift))
    found = list(checker.check_sessions({protocol: FILES[protocol]}))
    steps = [step for s in FILES[protocol].sessions for step in s.steps if step.units]
    sent = [_sent("step", {"output": step.output}) for step in steps]
    n = sum(p is not None and p.header.record["kind"] == kind for p in sent)
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
    found = list(checker.check_sessions({"fccm": FILES["fccm"]}))
    assert [each.wrong for each in found if "dtype" in each.wrong]


def _sent(call: str, answer: Answer) -> packets.Packet | None:
    if call != "step" or "output" not in answer:
        return None
    return packets.read(base64.b64decode(answer["output"]["contribution"]))
