"""`coterie protocols` says what there is and what each takes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from clustering_protocols import catalogue
from party_sdk.cli import main

OFFERED = [name for name, known in catalogue.catalogue().items() if known.methods]


def printed(*words: str) -> str:
    done = CliRunner().invoke(main, ["protocols", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_protocol_that_is_advised_is_listed() -> None:
    lines = printed().splitlines()
    assert [line.split()[0] for line in lines[1:]] == OFFERED
    assert [each["name"] for each in json.loads(printed("--json"))] == OFFERED


@pytest.mark.parametrize("name", OFFERED)
def test_every_parameter_risk_and_choice_of_a_protocol_is_said(name: str) -> None:
    text, known = printed(name), catalogue.describe(name)
    for field, schema in known["params"]["properties"].items():
        told = f"\n  {field}{'.' if '$ref' in schema else '  ('}" in text
        assert told != schema.get("deprecated", False)
    for code in (*known["risks"], *known["choices"], *known["learns"]):
        assert f"\n  {code}\n" in text
    assert max(map(len, text.splitlines())) <= 120
    assert json.loads(printed(name, "--json")) == known


def test_an_unknown_protocol_is_answered_with_the_known_ones() -> None:
    done = CliRunner().invoke(main, ["protocols", "kmeans"])
    assert done.exit_code != 0
    for name in OFFERED:
        assert name in done.output + str(done.exception)
