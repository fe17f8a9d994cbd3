"""The JSON form of arrays has the content and digest of the binary form."""

import json
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from support.in_process import Api, ByHand

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidArray, Malformed
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec, json_form
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.http_headers import digest_field

pytestmark = pytest.mark.every_python

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(400, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names
JSON = {"Accept": "application/json"}

shapes = hnp.array_shapes(max_dims=3, min_side=0, max_side=4)
arrays = st.sampled_from(list(codec.DTYPES.values())).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        shapes,
        elements=hnp.from_dtype(dtype, allow_nan=False, allow_infinity=False),
    )
)


@given(st.dictionaries(st.from_regex(codec.ARRAY_NAME, fullmatch=True), arrays))
def test_both_forms_have_the_same_bytes(content: dict[str, Any]) -> None:
    encoded = codec.encode({"n": 1}, content)
    text = json.dumps(json_form.of_bytes(encoded)).encode()
    assert json_form.to_bytes(text) == encoded


GOOD = {"dtype": "F64", "shape": [2], "data": [0.5, 1]}
BAD: dict[str, tuple[Any, type[CoterieError]]] = {
    "no JSON": ("{", Malformed),
    "a list": ([], Malformed),
    "no arrays": ({"header": {}}, Malformed),
    "something more": ({"header": {}, "arrays": {}, "x": 1}, Malformed),
    "arrays in a list": ({"header": {}, "arrays": []}, Malformed),
    "NaN": ('{"header":{},"arrays":{"x":{"data":[NaN]}}}', Malformed),
    "a name twice": ('{"header":{},"header":{},"arrays":{}}', Malformed),
    "no data": ({"dtype": "F64", "shape": [2]}, Malformed),
    "a dtype of numpy": ({**GOOD, "dtype": "float64"}, InvalidArray),
    "a dtype in a list": ({**GOOD, "dtype": ["F64"]}, InvalidArray),
    "a shape below nought": ({**GOOD, "shape": [-2]}, Malformed),
    "another shape": ({**GOOD, "shape": [3]}, InvalidArray),
    "a huge shape": ({**GOOD, "shape": [2**40, 2**40]}, InvalidArray),
    "texts": ({**GOOD, "data": ["0.5", "1"]}, InvalidArray),
    "truths": ({**GOOD, "data": [True, False]}, InvalidArray),
    "rows": ({**GOOD, "data": [[0.5], [1]]}, InvalidArray),
    "a text": ({**GOOD, "data": "0.5"}, InvalidArray),
    "fractions": ({**GOOD, "dtype": "I64"}, InvalidArray),
    "too large": ({"dtype": "I32", "shape": [1], "data": [2**31]}, InvalidArray),
    "numbers as bytes": ({"dtype": "U8", "shape": [1], "data": [1]}, InvalidArray),
    "a name": ({"header": {}, "arrays": {"X!": GOOD}}, InvalidArray),
    "no base64": ({"dtype": "U8", "shape": [1], "data": "AQ="}, InvalidArray),
    "half a residue": ({"dtype": "U64", "shape": [1], "data": "AQ=="}, InvalidArray),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_not_the_form_is_refused(what: str) -> None:
    content, problem = BAD[what]
    if isinstance(content, dict) and "header" not in content:
        content = {"header": {}, "arrays": {"x": content}}
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(problem):
        json_form.to_bytes(text.encode())


@pytest.fixture
def session(api: Api) -> ByHand:
    return api.open(Dummy(), PARTS).join()


def put_json(session: ByHand, slot: str, content: bytes, **changes: str) -> Any:
    text = json.dumps(json_form.of_bytes(content)).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Digest": digest_field(sha256(text).hexdigest()),
        **changes,
    }
    place = session.place(content)
    token = session.tokens[slot]
    return session.api.send("PUT", place, token, headers, content=text)


def test_a_session_goes_to_its_end_in_json(session: ByHand) -> None:
    api = session.api
    while session.status["state"] == "collecting":
        for slot in (A, B):
            path, token = f"{session.path}/task", session.tokens[slot]
            as_json = api.send("GET", path, token, JSON)
            as_bytes = api.send("GET", path, token)
            assert as_json.headers["content-type"] == "application/json"
            assert json_form.to_bytes(as_json.content) == as_bytes.content
            content = session.reply(slot)
            receipt = put_json(session, slot, content)
            assert receipt.status_code == 201, receipt.text
            assert put_json(session, slot, content).json() == receipt.json()
        api.turn()
    assert session.status["state"] == "completed"
    path = f"{session.path}/result"
    for slot in (A, B):
        as_json = api.send("GET", path, session.tokens[slot], JSON)
        as_bytes = api.send("GET", path, session.tokens[slot])
        assert json_form.to_bytes(as_json.content) == as_bytes.content


def test_a_receipt_names_the_digest_of_the_binary_form(session: ByHand) -> None:
    content = session.reply(A)
    assert put_json(session, A, content).json()["digest"] == sha256(content).hexdigest()
    assert session.put(A, content).status_code == 200, "the same, in the other form"


def test_json_that_is_not_what_was_announced_is_refused(session: ByHand) -> None:
    content, before = session.reply(A), session.api.stored()
    wrong = put_json(
        session,
        A,
        content,
        **{"Content-Digest": digest_field(sha256(b"other").hexdigest())},
    )
    assert wrong.json()["type"] == Problem.DIGEST_MISMATCH.urn
    broken = put_json(session, A, content, **{"Content-Digest": "sha-256=?"})
    assert broken.json()["type"] == Problem.MALFORMED.urn
    assert session.api.stored() == before


def test_over_the_limit_of_json_the_binary_form_is_named(
    start_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("contribution_endpoints", "requests"):
        monkeypatch.setattr(f"analyst_service.{module}.JSON_BYTES", 1 << 10)
    with start_api() as api:
        session = api.open(Dummy(), PARTS).join()
        session.answer()  # signs
        session.answer()  # greets
        refused = put_json(session, A, session.reply(A))
        assert refused.json()["type"] == Problem.TOO_LARGE.urn
        assert (
            "Content-Type: application/vnd.coterie.arrays" in refused.json()["detail"]
        )
        session.finish()
        refused = api.send("GET", f"{session.path}/result", session.tokens[A], JSON)
        assert refused.json()["type"] == Problem.TOO_LARGE.urn
        assert "Accept: application/vnd.coterie.arrays" in refused.json()["detail"]
