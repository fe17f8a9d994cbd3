"""`coterie protocols` says what there is and what each takes."""

import json

import pytest
from support.terminal import coterie

from clustering_protocols import catalogue

OFFERED = [name for name, known in catalogue.catalogue().items() if known.methods]


def printed(*words: str) -> str:
    return coterie("protocols", *words).stdout


@pytest.mark.parametrize("name", OFFERED)
def test_every_parameter_risk_and_choice_of_a_protocol_is_said(name: str) -> None:
    text, known = printed(name), catalogue.build_catalogue_entry(name)
    for field, schema in known["params"]["properties"].items():
        assert f"\n  {field}{'.' if '$ref' in schema else '  ('}" in text
    for code in (*known["risks"], *known["choices"], *known["learns"]):
        assert f"\n  {code}\n" in text
    assert max(map(len, text.splitlines())) <= 120
    assert json.loads(printed(name, "--json")) == known
